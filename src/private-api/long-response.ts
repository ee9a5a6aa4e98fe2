/**
 * A response that lasts as long as its reader wants: a tail, a stream of events, or an export. It has what these share: it
 * ends when its key ends or its reader is gone, and it tells when the reader has taken what was written.
 *
 * A stream of pushes is another thing: it ends in an orderly way, after the results of its last pairs, and it reads.
 */
import assert from 'node:assert/strict'
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http'
import type { AccessKeyRing } from '../access/access-key-ring.ts'
import { requestIdHeader, requestIdOf } from '../http/request-id.ts'
import { onceClosed } from '../http/once-closed.ts'
import { requestAccess } from '../access/request-access.ts'
import type { HandledCall } from './add-operations.ts'

/** Calls `stop` when the key of a request ends. Returns a function that cancels this. */
type WatchKey = (stop: () => void) => () => void

export class LongResponse {
  readonly #response: ServerResponse
  readonly #watchKey: WatchKey
  /** They cancel what `follow` has asked for. */
  readonly #unwatch: (() => void)[] = []
  /** They end the waits for the reader. */
  readonly #waiting: (() => void)[] = []
  #isOver = false

  /** Takes the response from Fastify and writes its head. */
  static begin(
    { request, reply }: Pick<HandledCall, 'request' | 'reply'>,
    ring: Pick<AccessKeyRing, 'watch'>,
    head: OutgoingHttpHeaders,
  ): LongResponse {
    assert(!reply.sent, 'a response begins once')
    const access = requestAccess(request)
    reply.hijack()
    reply.raw.writeHead(200, { ...head, [requestIdHeader]: requestIdOf(request.raw) })
    return new LongResponse(reply.raw, (stop) => ring.watch(access, stop))
  }

  /** @param response - its head is written */
  constructor(response: ServerResponse, watchKey: WatchKey) {
    this.#response = response
    this.#watchKey = watchKey
  }

  /**
   * Calls `stop` when the key has ended or the reader is gone, which may be at once, and `taken` each time the reader has
   * taken everything. Call this once. `stop` calls `end` or `destroy`; it may be called again after that.
   */
  follow(stop: () => void, taken?: () => void): void {
    assert(this.#unwatch.length === 0, 'a response is followed once')
    const response = this.#response
    const drained = (): void => {
      taken?.()
      this.#wake()
    }
    response.on('drain', drained)
    this.#unwatch.push(
      () => response.off('drain', drained),
      this.#watchKey(stop),
      onceClosed(response.req.socket, stop),
    )
    if (this.#isOver) this.#finish()
  }

  /** Returns false if nothing more should be written before the reader has taken this. */
  write(bytes: Buffer): boolean {
    return this.#response.write(bytes)
  }

  /** Resolves when the reader has taken what was written, or when the response is over. */
  drained(): Promise<void> {
    if (this.#isOver) return Promise.resolve()
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  end(): void {
    this.#finish()
    this.#response.end()
  }

  /** Breaks the response off, so that its reader sees that it is not complete. */
  destroy(): void {
    this.#finish()
    this.#response.destroy()
  }

  #finish(): void {
    this.#isOver = true
    for (const unwatch of this.#unwatch.splice(0)) unwatch()
    this.#wake()
  }

  #wake(): void {
    for (const goOn of this.#waiting.splice(0)) goOn()
  }
}
