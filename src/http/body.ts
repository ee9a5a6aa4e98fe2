/**
 * Reads the complete body of a request as one Buffer, decompressed, within a limit on the decompressed size.
 *
 * Most requests have no body or one that arrives in a single chunk. The first never waits. The second is not copied and
 * is done with its last byte, one event before the stream ends. A body in several chunks is gathered in a GrowingBody,
 * within the worker's budget for such bodies (body-budget.ts). If the budget is used up, the request is refused
 * immediately, and the rest of its body is read and discarded.
 *
 * The rest of a body over the limit is read and discarded, up to a bound, before the error is raised: a client sends its
 * complete request before it reads, so an earlier response would be lost with a reset connection. Past the bound the
 * connection must be closed; `mustClose` tells the code that writes the response.
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'
import { promisify } from 'node:util'
import { gunzip, inflate, inflateRaw } from 'node:zlib'
import { PostboteError } from '../kit/errors.ts'
import { GrowingBody } from './growing-body.ts'
import { kib, mib } from '../kit/limits.ts'

/** The part of the budget that one body has. */
export interface BodyReservation {
  /**
   * Counts `bytes` for this body instead of what was counted before, unless that was more.
   *
   * @param bytes - what the body takes in memory now
   * @returns false if the budget or the sender's share is used up; what was counted before stays counted
   */
  hold(bytes: number): boolean
  /** Counts another piece of the body that is not all of it. */
  piece(): void
  /** Returns everything to the budget. It may be called again. */
  end(): void
}

const noBytes = Buffer.alloc(0)
const unreadRequests = new WeakSet<BodyRequest>()

/** The part of an IncomingMessage that is needed here. */
export type BodyRequest = Readable & {
  readonly headers: IncomingHttpHeaders
  /** Its `destroySoon` ends the connection so that the client can read what is written. A link of two workers has none. */
  readonly socket?: { destroySoon?(): void }
}

/** Returns whether the body of the request was left unread, so that its connection cannot be used again. */
export function mustClose(request: BodyRequest): boolean {
  return unreadRequests.has(request)
}

export function hasBody(request: BodyRequest): boolean {
  const length = request.headers['content-length']
  return length === undefined
    ? request.headers['transfer-encoding'] !== undefined
    : length !== '0' && length !== ''
}

/**
 * This many pieces are read of a body that is not used. A body of 50 MB arrives in 1,000; in pieces of one byte, each
 * costs a worker 2 us, so this is 0.07 s.
 */
export const unwantedPiecesMax = 32_768

/**
 * Reads and discards an unwanted body, so that its client reads the response and may keep the connection. A body in too
 * many pieces ends the connection.
 */
export function dropBody(request: BodyRequest): void {
  let pieces = 0
  request.on('data', () => {
    pieces += 1
    if (pieces === unwantedPiecesMax) endConnection(request)
  })
}

/** Ends the connection of a request that has its response. */
function endConnection(request: BodyRequest): void {
  if (request.socket?.destroySoon === undefined) request.destroy()
  else request.socket.destroySoon()
}

export interface ReceiveOptions {
  readonly bytesMax: number
  /** The body's part of the worker's budget; without one, nothing is counted. */
  readonly reservation?: BodyReservation | undefined
}

/**
 * Reads and decompresses a body, without a byte order mark at its beginning. `bytesMax` limits both the received and the decompressed size. It rejects only with
 * REQUEST_TOO_LARGE, TOO_MANY_BODIES or BAD_REQUEST.
 *
 * @param growthMax - how many times its size a compressed body may unpack to, beyond `bodyGrowthFreeBytes`
 */
export function readBody(
  request: BodyRequest,
  options: ReceiveOptions,
  growthMax = Number.POSITIVE_INFINITY,
): Promise<Buffer> {
  const { bytesMax, reservation } = options
  if (!hasBody(request)) return Promise.resolve(noBytes)
  const receiving = receiveBody(request, options)
  const encoding = request.headers['content-encoding']
  const reading =
    reservation === undefined && encoding === undefined
      ? receiving
      : receiving.then((body) => {
          reservation?.end()
          return encoding === undefined ? body : decompress(body, encoding, { bytesMax, growthMax })
        })
  return reading.then(withoutByteOrderMark)
}

/** @param gotBytes - undefined if the body was not read to its end, and has not said its length. */
export function tooLarge(bytesMax: number, gotBytes?: number): PostboteError {
  const got = gotBytes === undefined ? '' : `, got ${gotBytes}`
  return new PostboteError('REQUEST_TOO_LARGE', {
    detail: `expected at most ${bytesMax} bytes of parameters${got}`,
  })
}

/** Returns the end of a refusal: how long a body is that was too large, if its request says that. */
export function gotText(request: BodyRequest): string {
  const declared = declaredBytesOf(request)
  return declared === undefined ? '' : `, got ${declared}`
}

/** In bytes. A compressed body does not say how long it is. */
function declaredBytesOf(request: BodyRequest): number | undefined {
  const { 'content-length': length, 'content-encoding': encoding } = request.headers
  return length === undefined || encoding !== undefined ? undefined : Number(length)
}

/**
 * This many bytes of a refused body are still read, so that a client that sends all of it before it reads gets the
 * response and keeps its connection. Chosen: twice the largest body that is accepted; a longer body loses its connection,
 * and a larger bound would let clients send more in vain.
 */
export const refusedBodyBytesMax = 8 * mib
/**
 * Each piece of a refused body counts as at least this many bytes, so that at most 131,072 are read. 8 MiB in pieces of
 * one byte would take a worker over ten seconds.
 */
const refusedPieceBytesMin = 64

/**
 * Receives the body without decompressing it. If this resolves, the caller must end the reservation; if it rejects, with the
 * errors of `readBody`, the reservation has ended.
 */
export function receiveBody(
  request: BodyRequest,
  { bytesMax, reservation }: ReceiveOptions,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const declared = Number(request.headers['content-length'] ?? Number.NaN)
    const body = new GrowingBody(
      declared <= bytesMax ? declared : bytesMax,
      (wanted) => reservation?.hold(wanted) !== false,
    )
    let bytes = 0
    let wastedBytes = 0
    let isSettled = false

    // The listeners stay: removing them costs more than a flag, and they end with the request.
    request.on('data', takeChunk)
    request.on('end', finish)
    request.on('close', abandon)
    // This body is too long to be drained, which its length shows without a read.
    if (declared > bytesMax + refusedBodyBytesMax) giveUp()

    function takeChunk(chunk: Buffer): void {
      if (isSettled) {
        waste(chunk.length)
        return
      }
      bytes += chunk.length
      if (bytes > bytesMax) {
        body.clear()
        reservation?.end()
        waste(Math.min(chunk.length, bytes - bytesMax))
      } else if (chunk.length === declared) {
        // The complete body in one piece: nothing needs to wait, so it needs no room in the budget.
        if (settle()) resolve(chunk)
        return
      } else {
        reservation?.piece()
        if (!body.add(chunk)) fail(new PostboteError('TOO_MANY_BODIES'))
      }
      if (bytes === declared) finish()
    }

    /** Counts bytes of a body that is refused already, or will be at its end. */
    function waste(chunkBytes: number): void {
      if (wastedBytes > refusedBodyBytesMax) return
      wastedBytes += Math.max(chunkBytes, refusedPieceBytesMin)
      if (wastedBytes <= refusedBodyBytesMax) return
      if (isSettled) endConnection(request)
      else giveUp()
    }

    function finish(): void {
      if (bytes > bytesMax) fail(tooLarge(bytesMax, bytes))
      else if (settle()) resolve(body.bytes())
    }

    function giveUp(): void {
      request.pause()
      unreadRequests.add(request)
      fail(tooLarge(bytesMax, declaredBytesOf(request)))
    }

    function abandon(): void {
      // Every request closes, and an error takes longer to make than the rest of a body.
      if (isSettled) return
      fail(new PostboteError('BAD_REQUEST', { detail: 'the body ended too early' }))
    }

    function fail(error: PostboteError): void {
      if (!settle()) return
      body.clear()
      reservation?.end()
      reject(error)
    }

    function settle(): boolean {
      if (isSettled) return false
      isSettled = true
      return true
    }
  })
}

function tooDense(growthMax: number): PostboteError {
  return new PostboteError('REQUEST_TOO_LARGE', {
    detail: `expected compressed parameters to unpack to at most ${growthMax} times their size`,
  })
}

const unpackers = {
  gzip: promisify<Buffer, { maxOutputLength: number }, Buffer>(gunzip),
  zlib: promisify<Buffer, { maxOutputLength: number }, Buffer>(inflate),
  raw: promisify<Buffer, { maxOutputLength: number }, Buffer>(inflateRaw),
} as const

interface UnpackLimits {
  readonly bytesMax: number
  readonly growthMax: number
}

/**
 * Any compressed body may unpack to this many bytes, because short text of one repeated character is compressed more than
 * `bodyGrowthMax` times.
 */
export const bodyGrowthFreeBytes = 64 * kib

/** zlib stops as soon as the output exceeds the limit, so a decompression bomb costs no more than an honest body. */
async function decompress(
  body: Buffer,
  encoding: string,
  { bytesMax, growthMax }: UnpackLimits,
): Promise<Buffer> {
  if (body.length === 0) return body
  const unpackedMax = Math.min(bytesMax, Math.max(bodyGrowthFreeBytes, body.length * growthMax))
  const unpack = unpackerFor(encoding.trim().toLowerCase(), body)
  if (unpack === undefined) return body
  try {
    return await unpack(body, { maxOutputLength: unpackedMax })
  } catch (error) {
    if (error instanceof RangeError) {
      throw unpackedMax < bytesMax ? tooDense(growthMax) : tooLarge(bytesMax)
    }
    const detail = 'expected the body to be encoded as its Content-Encoding says'
    throw new PostboteError('BAD_REQUEST', { detail, cause: error })
  }
}

function unpackerFor(
  encoding: string,
  body: Buffer,
): (typeof unpackers)[keyof typeof unpackers] | undefined {
  switch (encoding) {
    case '':
    case 'identity':
      return undefined
    case 'gzip':
    case 'x-gzip':
      return unpackers.gzip
    case 'deflate':
      return hasZlibHeader(body) ? unpackers.zlib : unpackers.raw
    default:
      throw new PostboteError('BAD_REQUEST', {
        detail: 'expected a Content-Encoding of gzip, deflate or identity',
      })
  }
}

/** "deflate" means zlib's format, but some clients omit its header. */
function hasZlibHeader(body: Buffer): boolean {
  const [first = 0, second = 0] = body
  return (first & 15) === 8 && ((first << 8) | second) % 31 === 0
}

/**
 * The byte order mark that some programs write before UTF-8. It is no part of JSON or of a stream of lines, so it is skipped.
 */
const byteOrderMark = Buffer.from('\ufeff')
const nothing = Buffer.alloc(0)

/** Returns a body without the mark at its beginning. */
export function withoutByteOrderMark(body: Buffer): Buffer {
  return body[0] === byteOrderMark[0] &&
    body[1] === byteOrderMark[1] &&
    body[2] === byteOrderMark[2]
    ? body.subarray(byteOrderMark.length)
    : body
}

/** Skips the mark at the beginning of a stream, whose chunks may end within it. */
export class ByteOrderMarkSkipper {
  /** How many bytes of the mark have arrived; undefined when the beginning is over. */
  #matched: number | undefined = 0

  skip(chunk: Buffer): Buffer {
    if (this.#matched === undefined) return chunk
    const before = this.#matched
    let matched = before
    while (matched < byteOrderMark.length && chunk[matched - before] === byteOrderMark[matched])
      matched++
    const isOpen = matched < byteOrderMark.length && matched - before === chunk.length
    this.#matched = isOpen ? matched : undefined
    if (isOpen) return nothing
    if (matched === byteOrderMark.length) return chunk.subarray(matched - before)
    return before === 0 ? chunk : Buffer.concat([byteOrderMark.subarray(0, before), chunk])
  }

  /** Returns what has arrived of a mark that the stream ended within. */
  rest(): Buffer {
    const matched = this.#matched ?? 0
    this.#matched = undefined
    return byteOrderMark.subarray(0, matched)
  }
}
