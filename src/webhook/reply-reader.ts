/**
 * Reads the body of a webhook's good answer where it may name a method to call (`--upstream`). Whatever becomes
 * of it, the update counts as delivered: a reply that is too large, or for which there is no room, is lost.
 */
import { webhookReplyBytesMax } from '../limits.ts'

/** The body of a good answer. */
export interface WebhookReply {
  /** Of the update that was answered: replies of one key are sent on in their order. */
  readonly orderingKey: string
  readonly contentType: string
  readonly body: Buffer
}

/** Where the replies of one webhook go. */
export interface ReplyIntake {
  /** Whether a body of this type can name a method. */
  wants(contentType: string): boolean
  /** Room for that many more bytes of a reply that is being read; false where there is none. */
  reserve(bytes: number): boolean
  release(bytes: number): void
  /** The room that was reserved for its body is given back by whoever takes it. */
  take(reply: WebhookReply): void
  /** One could not be read to its end for its size. */
  dropped(): void
}

type AnswerHeaders = Readonly<Record<string, string | string[] | undefined>>

/** Of one connection, one answer after the other. */
export class ReplyReader {
  readonly #intake: ReplyIntake
  #contentType: string | undefined
  #chunks: Buffer[] = []
  #bytes = 0

  constructor(intake: ReplyIntake) {
    this.#intake = intake
  }

  get isReading(): boolean {
    return this.#contentType !== undefined
  }

  begin(status: number, headers: AnswerHeaders): void {
    this.abandon()
    const { 'content-type': contentType, 'content-length': length } = headers
    const encoding = headers['content-encoding'] ?? 'identity'
    // Nothing but identity was offered.
    if (status < 200 || status > 299 || length === '0' || encoding !== 'identity') return
    if (typeof contentType === 'string' && this.#intake.wants(contentType)) {
      this.#contentType = contentType
    }
  }

  add(chunk: Buffer): void {
    if (this.#contentType === undefined) return
    const isTooLarge = this.#bytes + chunk.length > webhookReplyBytesMax
    if (isTooLarge || !this.#intake.reserve(chunk.length)) {
      this.#intake.dropped()
      this.abandon()
    } else {
      this.#chunks.push(chunk)
      this.#bytes += chunk.length
    }
  }

  end(orderingKey: string): void {
    const contentType = this.#contentType
    if (contentType === undefined) return
    // A copy: a chunk may be a small part of what was read from the socket, and would keep all of it.
    const body = Buffer.concat(this.#chunks, this.#bytes)
    this.#reset()
    this.#intake.take({ orderingKey, contentType, body })
  }

  /** The answer is over before its end, or of no interest. */
  abandon(): void {
    if (this.#bytes > 0) this.#intake.release(this.#bytes)
    this.#reset()
  }

  #reset(): void {
    this.#contentType = undefined
    if (this.#bytes === 0) return
    this.#chunks = []
    this.#bytes = 0
  }
}
