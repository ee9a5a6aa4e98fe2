/**
 * Reads the body of a webhook's successful response if it may name a method to call (`--upstream`). The update counts as
 * delivered in any case: a reply that is too large, or for which there is no room, is lost.
 */
import { webhookReplyBytesMax } from '../limits.ts'
import type { ResponseHeaders } from './response-headers.ts'

/** The body of a successful response. */
export interface WebhookReply {
  /** The key of the update that was delivered. Replies of one key are forwarded in order. */
  readonly orderingKey: string
  readonly contentType: string
  readonly body: Buffer
}

/** Receives the replies of one webhook. */
export interface ReplyIntake {
  /** Tells whether a body of this type can name a method. */
  wants(contentType: string): boolean
  /** Reserves room for that many more bytes of a reply that is being read. Returns false if there is no room. */
  reserve(bytes: number): boolean
  release(bytes: number): void
  /** Takes a complete reply. The receiver releases the room that was reserved for its body. */
  take(reply: WebhookReply): void
  /** Reports a reply that was not read to its end because of its size or lack of room. */
  dropped(): void
}

/** Reads the replies of one connection, one response at a time. */
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

  begin(status: number, headers: ResponseHeaders): void {
    this.abandon()
    const { 'content-type': contentType, 'content-length': length } = headers
    const encoding = headers['content-encoding'] ?? 'identity'
    // Requests accept no encoding but identity.
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
    // This copies the chunks, because a small chunk may keep a large read buffer alive.
    const body = Buffer.concat(this.#chunks, this.#bytes)
    this.#reset()
    this.#intake.take({ orderingKey, contentType, body })
  }

  /** The response ended early or is not needed. */
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
