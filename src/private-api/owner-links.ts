/** What the private API needs of the other workers (cluster/forward/peers.ts), seen from one request. */
import type { IncomingMessage } from 'node:http'

/** A streaming POST to another worker's private server. */
export interface OwnerStream {
  /** False when the caller should wait for `drained()`. */
  write(chunk: Uint8Array): boolean
  /** Resolves when more may be written, also when the stream has broken. */
  drained(): Promise<void>
  end(): void
  /** Rejects with STORE_UNAVAILABLE where nothing was sent, else with OUTCOME_UNKNOWN. */
  readonly response: Promise<IncomingMessage>
  destroy(): void
}

export interface OwnerLinks {
  readonly self: number
  readonly workers: number
  /** The worker that owns a bot. */
  ownerOf(botId: number): number
  /** The number of a worker's processes so far that were killed because they hung. */
  hangs(worker: number): number
  /** `isRepeat`: the worker was lost a moment ago; a killed process takes connections for another moment. */
  openStream(worker: number, path: string, isRepeat?: boolean): OwnerStream
}

/** Posts one body and reads the whole answer. */
export async function postToOwner(
  stream: OwnerStream,
  body: string,
): Promise<{ readonly status: number; readonly text: string }> {
  if (body !== '') stream.write(Buffer.from(body))
  stream.end()
  const response = await stream.response
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk)
  return { status: response.statusCode ?? 500, text: Buffer.concat(chunks).toString() }
}
