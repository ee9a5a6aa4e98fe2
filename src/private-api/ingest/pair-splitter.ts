/**
 * Splits an NDJSON stream of pairs of lines (protocol.md §9: a header, then its update) as its chunks arrive.
 *
 *   bytes   ... {"bot_id":1}\n{"message":{...}}\n ...
 *               ^start      ^headerEnd          ^end
 *                             ^updateStart
 *
 * A pair is a range of bytes with both lines in one piece, so it is forwarded with one copy, and a header that is only
 * examined needs no allocation. A pair within one chunk stays in that chunk. A pair that spans chunks is gathered in a
 * buffer that grows up to the limits of its lines. A longer line is skipped, and only its pair fails.
 *
 * Empty lines where a header is expected are skipped. An empty line after a header is that pair's (bad) update, so the
 * next pair is still recognized. `\r\n` ends a line as `\n` does.
 */

import { pairHeaderBytesMax } from '../limits.ts'
import { kib } from '../../limits.ts'

/** One pair. Its bytes are part of a chunk, or of a buffer that nothing else uses. */
export interface StreamPair {
  readonly bytes: Buffer
  /** Offset of its header. */
  readonly start: number
  /** Offset after its header, without the line end. */
  readonly headerEnd: number
  readonly updateStart: number
  /** Offset after its update, without the line end. */
  readonly end: number
  /** The line that exceeds its limit. The offsets are then without meaning. */
  readonly tooLarge: 'header' | 'update' | undefined
}

/** The limits of a PairSplitter. */
export interface PairSplitterOptions {
  /** Limit for an update line, in bytes. It must include the braces and white space around the longest text. */
  readonly updateLineBytesMax: number
}

const newline = 0x0a
const carriageReturn = 0x0d
const nothing: Buffer = Buffer.alloc(0)
const lineEnd = Buffer.of(newline)

/** The buffer for the beginning of a line has this size at first and doubles up to the longest line; usual pairs fit. */
const streamCarryBytesMin = 1 * kib

/** Splits one stream. */
export class PairSplitter {
  readonly #updateLineBytesMax: number
  /** The line that is being gathered, of a pair that began in an earlier chunk. */
  #open: 'none' | 'header' | 'update' = 'none'
  #tooLarge: 'header' | 'update' | undefined
  /** The bytes gathered of that pair, unless one of its lines is skipped. */
  #carry: Buffer = nothing
  #carryBytes = 0
  #headerEnd = 0
  #updateStart = 0
  /** Whether the open line has any bytes yet. */
  #hasBegun = false
  #pairBytes = 0

  constructor(options: PairSplitterOptions) {
    this.#updateLineBytesMax = options.updateLineBytesMax
  }

  /** Memory held for the pair that is being gathered, in bytes. */
  get carriedBytes(): number {
    return this.#carry.length
  }

  /** How many bytes have arrived of the pair whose end has not, including those of a line that is skipped. */
  get pairBytes(): number {
    return this.#pairBytes
  }

  /**
   * Processes a chunk.
   *
   * @param chunk - The next bytes of the stream. The returned pairs refer to them.
   * @returns The pairs that this chunk completes.
   */
  feed(chunk: Buffer): StreamPair[] {
    const pairs: StreamPair[] = []
    let at = 0
    while (at < chunk.length) {
      at =
        this.#open === 'none' ? this.#takeWhole(chunk, at, pairs) : this.#gather(chunk, at, pairs)
    }
    return pairs
  }

  /**
   * Ends a stream that was complete. The last line needs no line end.
   *
   * @returns The last pair; 'half' if the stream ended after a header; undefined if it ended between pairs.
   */
  end(): StreamPair | 'half' | undefined {
    const pairs: StreamPair[] = []
    if (this.#open !== 'none' && this.#hasBegun) this.#gather(lineEnd, 0, pairs)
    return this.#open === 'none' ? pairs[0] : 'half'
  }

  /** Takes a pair that is completely in the chunk, as nearly all are; otherwise opens it. Returns where to continue. */
  #takeWhole(chunk: Buffer, at: number, pairs: StreamPair[]): number {
    const headerLine = chunk.indexOf(newline, at)
    const headerEnd = withoutReturn(chunk, at, headerLine)
    if (headerLine >= 0 && headerEnd === at) return headerLine + 1
    const updateStart = headerLine + 1
    const updateLine = headerLine < 0 ? -1 : chunk.indexOf(newline, updateStart)
    if (updateLine < 0) {
      this.#open = 'header'
      return at
    }
    const end = withoutReturn(chunk, updateStart, updateLine)
    let tooLarge: StreamPair['tooLarge']
    if (headerEnd - at > pairHeaderBytesMax) tooLarge = 'header'
    else if (end - updateStart > this.#updateLineBytesMax) tooLarge = 'update'
    pairs.push({ bytes: chunk, start: at, headerEnd, updateStart, end, tooLarge })
    return updateLine + 1
  }

  /** Takes the next piece of the open line. Returns where to continue. */
  #gather(chunk: Buffer, at: number, pairs: StreamPair[]): number {
    const line = chunk.indexOf(newline, at)
    const end = line < 0 ? chunk.length : line + 1
    this.#hasBegun ||= end > at
    this.#pairBytes += end - at
    this.#keep(chunk, at, end)
    if (line < 0) return end
    if (this.#open === 'header') this.#endHeader()
    else pairs.push(this.#endUpdate())
    return end
  }

  #endHeader(): void {
    this.#headerEnd = withoutReturn(this.#carry, 0, this.#carryBytes - 1)
    this.#updateStart = this.#carryBytes
    if (this.#tooLarge === undefined && this.#headerEnd === 0) return this.#close()
    this.#open = 'update'
    this.#hasBegun = false
    if (this.#headerEnd > pairHeaderBytesMax) this.#skip('header')
  }

  #endUpdate(): StreamPair {
    const start = this.#updateStart
    const end = withoutReturn(this.#carry, start, this.#carryBytes - 1)
    if (end - start > this.#updateLineBytesMax) this.#skip('update')
    const pair: StreamPair = {
      bytes: this.#carry,
      start: 0,
      headerEnd: this.#headerEnd,
      updateStart: start,
      end,
      tooLarge: this.#tooLarge,
    }
    this.#close()
    return pair
  }

  /** Closes the pair, which owns its bytes from now on. */
  #close(): void {
    this.#open = 'none'
    this.#tooLarge = undefined
    this.#carry = nothing
    this.#carryBytes = 0
    this.#hasBegun = false
    this.#pairBytes = 0
  }

  #skip(line: 'header' | 'update'): void {
    this.#tooLarge = line
    this.#carry = nothing
    this.#carryBytes = 0
  }

  #keep(chunk: Buffer, start: number, end: number): void {
    if (this.#tooLarge !== undefined) return
    const bytes = this.#carryBytes + end - start
    // The line end may add two bytes to the limit.
    const bytesMax =
      this.#open === 'header'
        ? pairHeaderBytesMax + 2
        : this.#updateStart + this.#updateLineBytesMax + 2
    if (bytes > bytesMax) return this.#skip(this.#open === 'header' ? 'header' : 'update')
    if (bytes > this.#carry.length) this.#grow(Math.max(bytes, 2 * this.#carry.length))
    chunk.copy(this.#carry, this.#carryBytes, start, end)
    this.#carryBytes = bytes
  }

  #grow(bytesWanted: number): void {
    const bytesMax = pairHeaderBytesMax + this.#updateLineBytesMax + 4
    const bytes = Math.min(Math.max(bytesWanted, streamCarryBytesMin), bytesMax)
    const grown = Buffer.allocUnsafe(bytes)
    this.#carry.copy(grown, 0, 0, this.#carryBytes)
    this.#carry = grown
  }
}

/** Returns the end of a line whose `\n` is at `end`. */
function withoutReturn(bytes: Buffer, start: number, end: number): number {
  return end > start && bytes[end - 1] === carriageReturn ? end - 1 : end
}
