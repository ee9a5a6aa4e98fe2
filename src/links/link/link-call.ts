/** One request on its way over a link, and its response. */
import assert from 'node:assert/strict'
import { headerBytesMax } from '../../http/limits.ts'
import { frameType, fin } from './frame.ts'
import type { FrameWriter } from './frame-writer.ts'
import type { RequestFields } from './request-fields.ts'
import { type ResponseHead, readResponseHead } from './response-head.ts'
import { kib } from '../../kit/limits.ts'

/** Gets the response as it arrives. Nothing is called after `answered`, `ended`, `lost`, or a call's `destroy`. */
export interface ResponseReceiver {
  /** The complete response; a string has one byte per character. */
  answered(head: ResponseHead, body: string | Buffer): void
  /** Otherwise the head, the parts (false: stop until `resume`) and the end arrive one by one. */
  begun(head: ResponseHead): void
  part(bytes: Buffer): boolean
  ended(): void
  /** The link or the owner broke it off, or the bytes are no response. */
  lost(error: Error): void
  /** More of the request may be written. */
  mayWrite?(): void
}

export interface LinkRequest {
  readonly fields: RequestFields
  readonly hasBody: boolean
}

/** What a call needs of its link. */
export interface CallLink {
  /** Undefined while the link connects. */
  readonly writer: FrameWriter | undefined
  /** The call is complete or was given up. */
  ended(call: LinkCall): void
}

export interface LinkCallParts extends LinkRequest {
  readonly exchange: number
  readonly receiver: ResponseReceiver
}

const headEnd = Buffer.from('\r\n\r\n')
const nothing = Buffer.alloc(0)

/** A message up to this size is sent in one piece with its head: copying it costs less than a second write. */
export const shortResponseBytesMax = 16 * kib - 1

export class LinkCall {
  readonly exchange: number
  readonly fields: RequestFields
  readonly hasBody: boolean
  readonly #link: CallLink
  readonly #receiver: ResponseReceiver
  /** What was written before the link was open. */
  #unsent: Uint8Array[] = []
  #isRequestEnded: boolean
  #isOpen = false
  #isDone = false
  /** The beginning of a head that arrived in pieces. */
  #partial = nothing
  #head: ResponseHead | undefined
  #bytesLeft: number | undefined
  #hasBegun = false
  /** The owner was told to wait. */
  #isPaused = false
  #isHurried = false
  /** The owner wants no more of the request for now. */
  isHeldBack = false

  constructor(link: CallLink, { exchange, fields, hasBody, receiver }: LinkCallParts) {
    this.#link = link
    this.exchange = exchange
    this.fields = fields
    this.hasBody = hasBody
    this.#isRequestEnded = !hasBody
    this.#receiver = receiver
  }

  /** Sends a part of the body. Returns false if the caller should wait for `mayWrite`. */
  write(bytes: Uint8Array): boolean {
    if (this.#isDone || this.#isRequestEnded) return true
    if (!this.#isOpen) {
      this.#unsent.push(bytes)
      return false
    }
    this.#link.writer?.write({ exchange: this.exchange, type: frameType.data }, bytes)
    return !this.#mustWait
  }

  /** Ends the body, with a last part if one is given. */
  end(bytes: Uint8Array = nothing): void {
    if (this.#isDone || this.#isRequestEnded) return
    this.#isRequestEnded = true
    if (this.#isOpen) this.#sendEnd(bytes)
    else if (bytes.length > 0) this.#unsent.push(bytes)
  }

  /** Continues to read after `part` returned false. */
  resume(): void {
    if (!this.#isPaused) return
    this.#isPaused = false
    this.#send(frameType.resume)
  }

  /** Gives up the call; its receiver gets no further calls. */
  destroy(): void {
    if (this.#isDone) return
    this.#finish()
    this.#send(frameType.cancel)
  }

  /** The client waits for no event any longer, and gets the response there is. The request is complete. */
  hurry(): void {
    this.#isHurried = true
    if (!this.#isDone) this.#send(frameType.data)
  }

  /** For the link: the request can be sent. */
  opened(): void {
    assert(!this.#isOpen, 'a call is opened once')
    this.#isOpen = true
    this.#sendRest()
    if (this.#isHurried) this.hurry()
  }

  #sendRest(): void {
    const unsent = this.#unsent
    this.#unsent = []
    const last = this.#isRequestEnded ? unsent.pop() : undefined
    for (const bytes of unsent) {
      this.#link.writer?.write({ exchange: this.exchange, type: frameType.data }, bytes)
    }
    if (!this.hasBody) return
    if (this.#isRequestEnded) this.#sendEnd(last ?? nothing)
    else this.drained()
  }

  /** For the link: more of the request may be written. */
  drained(): void {
    if (!this.#isDone && !this.#mustWait) this.#receiver.mayWrite?.()
  }

  /** For the link: the next bytes of the response, and whether they are the last. */
  take(bytes: Buffer, isLast: boolean): void {
    if (this.#isDone) return
    try {
      const rest = this.#head === undefined ? this.#takeHead(bytes) : bytes
      if (rest !== undefined && this.#head !== undefined) this.#takeBody(rest, isLast, this.#head)
      else if (isLast) throw new Error('expected a response')
    } catch (error) {
      this.destroy()
      this.#receiver.lost(error instanceof Error ? error : new Error(String(error)))
    }
  }

  /** For the link: no response follows. */
  lose(error: Error): void {
    if (this.#isDone) return
    this.#finish()
    this.#receiver.lost(error)
  }

  get #mustWait(): boolean {
    return this.isHeldBack || this.#link.writer?.isCongested === true
  }

  /** Returns what follows the head, or undefined while more of it is missing. */
  #takeHead(bytes: Buffer): Buffer | undefined {
    const all = this.#partial.length === 0 ? bytes : Buffer.concat([this.#partial, bytes])
    const end = all.indexOf(headEnd)
    if (end < 0) {
      if (all.length > headerBytesMax) throw new Error('expected a shorter head')
      this.#partial = Buffer.from(all)
      return undefined
    }
    this.#partial = nothing
    const head = readResponseHead(all.toString('latin1', 0, end))
    const rest = all.subarray(end + headEnd.length)
    const isInterim = head.status < 200
    if (isInterim) return rest.length === 0 ? undefined : this.#takeHead(rest)
    this.#head = head
    this.#bytesLeft = this.#bodyBytesOf(head)
    return rest
  }

  #takeBody(bytes: Buffer, isLast: boolean, head: ResponseHead): void {
    const isWhole = this.#isWholeWith(bytes.length, isLast)
    if (!isWhole || this.#hasBegun) {
      this.#passOn(bytes, isWhole, head)
      return
    }
    this.#end()
    const isShort = bytes.length <= shortResponseBytesMax
    this.#receiver.answered(head, isShort ? bytes.toString('latin1') : Buffer.from(bytes))
  }

  /** Returns whether the body is complete with these bytes. */
  #isWholeWith(bytes: number, isLast: boolean): boolean {
    if (this.#bytesLeft === undefined) return isLast
    this.#bytesLeft -= bytes
    if (this.#bytesLeft < 0) throw new Error('expected no more than its length')
    if (isLast && this.#bytesLeft > 0) throw new Error('expected the rest of a response')
    return this.#bytesLeft === 0
  }

  #passOn(bytes: Buffer, isWhole: boolean, head: ResponseHead): void {
    if (!this.#hasBegun) {
      this.#hasBegun = true
      this.#receiver.begun(head)
    }
    if (bytes.length > 0 && !this.#receiver.part(Buffer.from(bytes)) && !this.#isPaused) {
      this.#isPaused = true
      this.#send(frameType.pause)
    }
    if (!isWhole || this.#isDone) return
    this.#end()
    this.#receiver.ended()
  }

  /** The response is complete. The rest of a request that is not is not sent. */
  #end(): void {
    this.#finish()
    if (!this.#isRequestEnded) this.#send(frameType.cancel)
    else this.resume()
  }

  #finish(): void {
    this.#isDone = true
    this.#unsent = []
    this.#link.ended(this)
  }

  #bodyBytesOf({ status, bodyBytes }: ResponseHead): number | undefined {
    const isEmpty = this.fields.method === 'HEAD' || status === 204 || status === 304
    return isEmpty ? 0 : bodyBytes
  }

  #sendEnd(bytes: Uint8Array): void {
    this.#link.writer?.write({ exchange: this.exchange, type: frameType.data | fin }, bytes)
  }

  #send(type: number): void {
    if (this.#isOpen) this.#link.writer?.write({ exchange: this.exchange, type })
  }
}
