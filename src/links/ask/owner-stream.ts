/** Requests of this worker to the owners of bots, which are all workers of the server. worker/reach-owners.ts opens them. */
import type { Readable } from 'node:stream'

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
  /** Rejects with STORE_UNAVAILABLE if nothing was done (`ShardMoves` if the shard is on its way), otherwise with OUTCOME_UNKNOWN. */
  readonly response: Promise<OwnerResponse>
  /** Gives the request up. */
  destroy(): void
}

/** A request of which a part may have its results already, so only its sender knows what to send again. */
export interface OwnFeed {
  /** The last request ended a moment ago without a result. A killed process accepts connections a moment longer. */
  readonly isRepeat: boolean
}

/** The owners as the private API reaches them for one request. */
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
  /**
   * Opens a request. While the shard passes from one owner to the next, nobody has done anything, and the next one is asked: all
   * of the request is sent again, unless it is a feed.
   */
  openStream(owner: number, path: string, feed?: OwnFeed): OwnerStream
}

/** A complete response of another worker. */
export interface CompleteResponse {
  readonly status: number
  /** The Retry-After header. */
  readonly retryAfter: string | undefined
  readonly text: string
}

/**
 * Sends one body and reads the complete response.
 *
 * @param signal - gives the request up when it is aborted
 * @throws the error of the stream
 */
export async function postToOwner(
  stream: OwnerStream,
  body: string,
  signal?: AbortSignal,
): Promise<CompleteResponse> {
  const end = (): void => stream.destroy()
  if (signal?.aborted === true) end()
  signal?.addEventListener('abort', end, { once: true })
  try {
    if (body !== '') stream.write(Buffer.from(body))
    stream.end()
    const { status, retryAfter, body: responseBody } = await stream.response
    const chunks: Buffer[] = []
    for await (const chunk of responseBody) chunks.push(chunk)
    return { status, retryAfter, text: Buffer.concat(chunks).toString() }
  } finally {
    signal?.removeEventListener('abort', end)
  }
}
