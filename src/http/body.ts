/**
 * The whole body of a request as one Buffer, decompressed, within a limit that counts what comes out.
 *
 * Most requests have no body or one of a single chunk: the first never waits, the second is not copied and is done
 * with its last byte, an event before the stream ends.
 *
 * A body over the limit is read on and thrown away, up to a bound, before the error is raised: a client sends all of
 * its request before it reads, so an earlier answer would be lost with a reset connection. Past the bound the
 * connection has to be closed; `mustClose` tells that to who writes the answer.
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'
import { promisify } from 'node:util'
import { gunzip, inflate, inflateRaw } from 'node:zlib'
import { PostboteError } from '../errors.ts'
import { refusedBodyBytesMax } from '../limits.ts'

const noBytes = Buffer.alloc(0)
const noChunks: Buffer[] = []
const unreadRequests = new WeakSet<BodyRequest>()

/** The part of an IncomingMessage that is needed here. */
export type BodyRequest = Readable & { readonly headers: IncomingHttpHeaders }

/** Whether the request's body was left unread, so that its connection cannot be used again. */
export function mustClose(request: BodyRequest): boolean {
  return unreadRequests.has(request)
}

export function hasBody(request: BodyRequest): boolean {
  const length = request.headers['content-length']
  return length === undefined
    ? request.headers['transfer-encoding'] !== undefined
    : length !== '0' && length !== ''
}

/** Rejects with REQUEST_TOO_LARGE or BAD_REQUEST, nothing else. */
export function readBody(request: BodyRequest, bytesMax: number): Promise<Buffer> {
  if (!hasBody(request)) return Promise.resolve(noBytes)
  const reading = readChunks(request, bytesMax)
  const encoding = request.headers['content-encoding']
  if (encoding === undefined) return reading
  return reading.then((body) => decompress(body, encoding, bytesMax))
}

export function tooLarge(bytesMax: number): PostboteError {
  return new PostboteError('REQUEST_TOO_LARGE', {
    detail: `at most ${bytesMax} bytes of parameters are accepted`,
  })
}

function readChunks(request: BodyRequest, bytesMax: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const declared = Number(request.headers['content-length'] ?? Number.NaN)
    let chunks: Buffer[] = []
    let bytes = 0
    let isSettled = false

    request.on('data', takeChunk)
    request.on('end', finish)
    request.on('close', abandon)
    // Nothing needs to be read to know that this one cannot be drained.
    if (declared > bytesMax + refusedBodyBytesMax) giveUp()

    function takeChunk(chunk: Buffer): void {
      if (isSettled) return
      bytes += chunk.length
      if (bytes > bytesMax) {
        chunks = []
        if (bytes > bytesMax + refusedBodyBytesMax) giveUp()
      } else {
        chunks.push(chunk)
      }
      if (bytes === declared) finish()
    }

    function finish(): void {
      const read = chunks
      if (!settle()) return
      const [first = noBytes] = read
      if (bytes > bytesMax) reject(tooLarge(bytesMax))
      else resolve(read.length > 1 ? Buffer.concat(read, bytes) : first)
    }

    function giveUp(): void {
      if (!settle()) return
      request.pause()
      unreadRequests.add(request)
      reject(tooLarge(bytesMax))
    }

    function abandon(): void {
      if (!settle()) return
      reject(new PostboteError('BAD_REQUEST', { detail: 'the body ended too early' }))
    }

    function settle(): boolean {
      if (isSettled) return false
      isSettled = true
      // The listeners stay: taking them off costs more than a flag, and they go with the request.
      chunks = noChunks
      return true
    }
  })
}

const unpackers = {
  gzip: promisify<Buffer, { maxOutputLength: number }, Buffer>(gunzip),
  zlib: promisify<Buffer, { maxOutputLength: number }, Buffer>(inflate),
  raw: promisify<Buffer, { maxOutputLength: number }, Buffer>(inflateRaw),
} as const

/** zlib stops as soon as the output passes the limit, so that a bomb costs no more than an honest body. */
async function decompress(body: Buffer, encoding: string, bytesMax: number): Promise<Buffer> {
  if (body.length === 0) return body
  const unpack = unpackerFor(encoding.trim().toLowerCase(), body)
  if (unpack === undefined) return body
  try {
    return await unpack(body, { maxOutputLength: bytesMax })
  } catch (error) {
    if (error instanceof RangeError) throw tooLarge(bytesMax)
    const detail = 'the body is not what its Content-Encoding says'
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

/** "deflate" means zlib's format, but some senders leave its header out. */
function hasZlibHeader(body: Buffer): boolean {
  const [first = 0, second = 0] = body
  return (first & 15) === 8 && ((first << 8) | second) % 31 === 0
}
