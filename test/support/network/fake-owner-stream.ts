import { PassThrough } from 'node:stream'
import type { OwnerResponse, OwnerStream } from '../../../src/links/ask/owner-stream.ts'
import { type ErrorCode, PostboteError } from '../../../src/kit/errors.ts'

/** A stream to another owner whose responses the test provides. */
export class FakeOwnerStream implements OwnerStream {
  written = ''
  isFull = false
  isEnded = false
  isDestroyed = false
  readonly response: Promise<OwnerResponse>
  #respond: (response: OwnerResponse) => void = () => undefined
  #reject: (error: unknown) => void = () => undefined
  #onDrain: (() => void)[] = []

  constructor() {
    this.response = new Promise((resolve, reject) => {
      this.#respond = resolve
      this.#reject = reject
    })
    this.response.catch(() => undefined)
  }

  write(chunk: Uint8Array): boolean {
    this.written += Buffer.from(chunk).toString()
    return !this.isFull
  }

  drained(): Promise<void> {
    return new Promise((resolve) => this.#onDrain.push(resolve))
  }

  end(): void {
    this.isEnded = true
  }

  destroy(): void {
    this.isDestroyed = true
    this.drain()
  }

  drain(): void {
    this.isFull = false
    for (const resolve of this.#onDrain.splice(0)) resolve()
  }

  answer(status = 200): PassThrough {
    const body = new PassThrough()
    this.#respond({ status, retryAfter: undefined, body })
    return body
  }

  refuse(code: ErrorCode): void {
    this.fail(new PostboteError(code))
  }

  fail(error: PostboteError): void {
    this.#reject(error)
  }
}
