/** What the private API needs from the other workers (cluster/forward/peers.ts), for one request. */
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
  /** Rejects with STORE_UNAVAILABLE if nothing was sent, otherwise with OUTCOME_UNKNOWN. */
  readonly response: Promise<OwnerResponse>
  destroy(): void
}

export interface OwnerLinks {
  readonly self: number
  readonly workers: number
  /** Returns the worker that owns a bot. */
  ownerOf(botId: number): number
  /** Number of a worker's processes that were killed so far because they hung. */
  hangs(worker: number): number
  /** Opens a request. `isRepeat`: the worker was lost a moment ago; a killed process accepts connections a moment longer. */
  openStream(worker: number, path: string, isRepeat?: boolean): OwnerStream
}

/** A complete response of another worker. */
export interface CompleteResponse {
  readonly status: number
  /** The Retry-After header. */
  readonly retryAfter: string | undefined
  readonly text: string
}

/** Posts one body and reads the complete response. */
export async function postToOwner(stream: OwnerStream, body: string): Promise<CompleteResponse> {
  if (body !== '') stream.write(Buffer.from(body))
  stream.end()
  const { status, retryAfter, body: responseBody } = await stream.response
  const chunks: Buffer[] = []
  for await (const chunk of responseBody) chunks.push(chunk)
  return { status, retryAfter, text: Buffer.concat(chunks).toString() }
}
