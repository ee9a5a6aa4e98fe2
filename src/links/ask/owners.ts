/** The owners of bots, all workers of the server, as the private API reaches them for one request (worker/owners-of.ts). */
import type { Readable } from 'node:stream'
import { type Clock, sleep } from '../../kit/clock.ts'
import { PostboteError } from '../../kit/errors.ts'
import { OwnerWait } from '../owner-wait.ts'

export interface OwnerResponse {
  readonly status: number
  /** The Retry-After header. */
  readonly retryAfter: string | undefined
  readonly body: Readable
}

/** A streaming POST request to the private server of another worker. */
export interface OwnerStream {
  /** Returns false if the caller should wait for `drained()`. */
  write(chunk: Uint8Array): boolean
  /** Resolves when more may be written, or when the stream has broken. */
  drained(): Promise<void>
  end(): void
  /** Rejects with STORE_UNAVAILABLE if nothing was done (`ShardMoves` if an owner was named), otherwise with OUTCOME_UNKNOWN. */
  readonly response: Promise<OwnerResponse>
  destroy(): void
}

export interface Owners {
  readonly self: number
  /** All other workers. */
  readonly others: readonly number[]
  /** Whether an owner is a worker of another node. */
  isOtherNode(owner: number): boolean
  /** Returns the number of the owner of a bot, which never changes: a worker, or whoever has the shard of the bot. */
  ownerOf(botId: number): number
  /** Whether this worker is that owner now. */
  isOwn(owner: number): boolean
  /** Whether this worker gives up all of its shards, so that what it cannot store any more belongs to its successor. */
  readonly hasLeft: boolean
  /** Number of an owner's processes that were killed so far because they hung. */
  hangs(owner: number): number
  /** Opens a request. `isRepeat`: the owner was lost a moment ago; a killed process accepts connections a moment longer. */
  openStream(owner: number, path: string, isRepeat?: boolean): OwnerStream
}

/** A complete response of another worker. */
export interface CompleteResponse {
  readonly status: number
  /** The Retry-After header. */
  readonly retryAfter: string | undefined
  readonly text: string
}

export interface PostOptions {
  readonly body?: string
  /** Ends the request, and its repetition, when it is aborted. */
  readonly signal?: AbortSignal
}

/** An owner that is not there is looked for again after this time: a hand-over takes about as long. */
export const ownerAskAgainMs = 100

/**
 * Posts one body to an owner and reads the complete response. While the shard passes from one owner to the next, nobody has
 * done anything, and the next one is asked.
 *
 * @throws the error of the stream; STORE_UNAVAILABLE if the signal was aborted before an owner was found.
 */
export async function postToOwner(
  clock: Clock,
  open: () => OwnerStream,
  { body = '', signal }: PostOptions = {},
): Promise<CompleteResponse> {
  const wait = new OwnerWait(clock)
  for (;;) {
    if (signal?.aborted === true) throw new PostboteError('STORE_UNAVAILABLE')
    const stream = open()
    const end = (): void => stream.destroy()
    signal?.addEventListener('abort', end, { once: true })
    try {
      return await postOnce(stream, body)
    } catch (error) {
      if (!wait.mayRepeat(error)) throw error
    } finally {
      signal?.removeEventListener('abort', end)
    }
    await sleep(clock, ownerAskAgainMs, signal)
  }
}

async function postOnce(stream: OwnerStream, body: string): Promise<CompleteResponse> {
  if (body !== '') stream.write(Buffer.from(body))
  stream.end()
  const { status, retryAfter, body: responseBody } = await stream.response
  const chunks: Buffer[] = []
  for await (const chunk of responseBody) chunks.push(chunk)
  return { status, retryAfter, text: Buffer.concat(chunks).toString() }
}
