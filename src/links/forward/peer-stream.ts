/** A streamed request of this worker's own to another one (owner-call.ts). */
import { PassThrough } from 'node:stream'
import type { OwnerResponse, OwnerStream, OwnFeed } from '../ask/owner-stream.ts'
import { PostboteError } from '../../kit/errors.ts'
import { kib } from '../../kit/limits.ts'
import type { ResponseHead } from '../link/response-head.ts'
import { ShardMoves } from '../owner-wait.ts'
import {
  type OwnerAnswer,
  OwnerCall,
  type OwnerFailure,
  type OwnerTarget,
  type OwnerWays,
} from './owner-call.ts'

export interface StreamTo extends Pick<OwnerTarget, 'place' | 'owner'> {
  /** The shard that all of the request is for, if it is for one. */
  readonly shard?: number | undefined
  readonly path: string
  /** The address of the original client, as `requestOrigin` returned it. */
  readonly clientAddress: string
  readonly headers: Readonly<Record<string, string>>
  readonly feed?: OwnFeed | undefined
}

/** This much of a response is held for a caller that does not read. */
const streamBufferBytes = 256 * kib

export class PeerStream implements OwnerStream, OwnerAnswer {
  readonly response: Promise<OwnerResponse>
  readonly #call: OwnerCall
  readonly #body = new PassThrough({ highWaterMark: streamBufferBytes })
  #onResponse: (response: OwnerResponse) => void = ignore
  #onLost: (error: PostboteError) => void = ignore
  #onDrained: (() => void)[] = []
  #mustWait = false

  constructor(
    ways: OwnerWays,
    { place, owner, shard, path, clientAddress, headers, feed }: StreamTo,
  ) {
    this.response = new Promise((resolve, reject) => {
      this.#onResponse = resolve
      this.#onLost = reject
    })
    this.response.catch(ignore) // A caller that only writes does not await `response`.
    this.#body.on('error', ignore)
    this.#body.on('drain', () => this.#call.resume())
    const rawHeaders = [...Object.entries(headers).flat(), 'Transfer-Encoding', 'chunked']
    const origin = { listener: 'private', clientAddress, hops: 1, shard } as const
    const request = {
      fields: { method: 'POST', url: path, rawHeaders, origin },
      hasBody: true,
      keptBytesMax: feed === undefined ? Infinity : 0,
      isIdempotent: false,
      isRepeat: feed?.isRepeat === true,
    }
    // Not on the link of the requests, so that many pushes delay none of them.
    this.#call = new OwnerCall(ways, { place, owner, isStream: true }, request, this)
    this.#call.start()
  }

  write(chunk: Uint8Array): boolean {
    this.#mustWait = !this.#call.write(chunk)
    return !this.#mustWait
  }

  drained(): Promise<void> {
    if (!this.#mustWait) return Promise.resolve()
    return new Promise((resolve) => this.#onDrained.push(() => resolve()))
  }

  mayWrite(): void {
    this.#mustWait = false
    for (const resolve of this.#onDrained.splice(0)) resolve()
  }

  end(): void {
    this.#call.end()
  }

  destroy(): void {
    this.#call.destroy()
    this.#fail(new PostboteError('OUTCOME_UNKNOWN'))
  }

  answered(head: ResponseHead, body: string | Buffer): void {
    this.begun(head)
    this.#body.end(body, 'latin1')
    this.mayWrite()
  }

  begun({ status, headers }: ResponseHead): void {
    const at = headers.findIndex((name, nth) => nth % 2 === 0 && /^retry-after$/i.test(name))
    const retryAfter = at < 0 ? undefined : headers[at + 1]
    this.#onResponse({ status, retryAfter, body: this.#body })
  }

  part(bytes: Buffer): boolean {
    return this.#body.write(bytes)
  }

  ended(): void {
    this.#body.end()
    this.mayWrite()
  }

  failed(how: OwnerFailure, cause: Error): void {
    if (how !== 'nowhere') this.#fail(new PostboteError('OUTCOME_UNKNOWN', { cause }))
    else if (cause instanceof ShardMoves) this.#fail(cause)
    else this.#fail(new PostboteError('STORE_UNAVAILABLE', { cause }))
  }

  #fail(error: PostboteError): void {
    this.#onLost(error)
    this.#body.destroy(error)
    this.mayWrite()
  }
}

function ignore(): void {
  // Nothing to do.
}
