/**
 * Splits an NDJSON stream of pairs of lines (SPEC 9: a header, then its update) as its chunks arrive.
 *
 *   bytes   ... {"bot_id":1}\n{"message":{...}}\n ...
 *               ^start      ^headerEnd          ^end
 *                             ^updateStart
 *
 * A pair is a place in some bytes, both lines in one piece: so it is sent on by a single copy and nothing is allocated
 * for a header that only needs to be looked at. A pair within one chunk lies in that chunk; one that spans chunks is
 * gathered in a buffer that grows up to the limits of its lines and not beyond: a longer line is skipped, and its pair
 * fails alone.
 *
 * Where a header is expected empty lines are skipped; an empty line behind a header is that pair's (bad) update, so that
 * the next pair is still read as one. `\r\n` ends a line as `\n` does.
 */

import { pairHeaderBytesMax, streamCarryBytesMin } from '../limits.ts'

/** The bytes are those of a chunk given, or of a buffer nobody else holds. */
export interface Pair {
  readonly bytes: Buffer
  /** Where its header begins. */
  readonly start: number
  /** Behind its header, without the line end. */
  readonly headerEnd: number
  readonly updateStart: number
  /** Behind its update, without the line end. */
  readonly end: number
  /** The line that is over its limit; nothing is known of the pair then. */
  readonly tooLarge: 'header' | 'update' | undefined
}

export interface PairSplitterOptions {
  /** Leave room for the braces and white space around the longest text. */
  readonly updateLineBytesMax: number
}

const newline = 0x0a
const carriageReturn = 0x0d
const nothing: Buffer = Buffer.alloc(0)
const lineEnd = Buffer.of(newline)

export class PairSplitter {
  readonly #updateLineBytesMax: number
  /** Which line of a pair that began in an earlier chunk is being gathered. */
  #open: 'none' | 'header' | 'update' = 'none'
  #tooLarge: 'header' | 'update' | undefined
  /** What has come of that pair, unless a line of it is skipped. */
  #carry: Buffer = nothing
  #carryBytes = 0
  #headerEnd = 0
  #updateStart = 0
  /** Whether any byte of the open line has come. */
  #hasBegun = false

  constructor(options: PairSplitterOptions) {
    this.#updateLineBytesMax = options.updateLineBytesMax
  }

  /** What the pair that is being gathered holds in memory. */
  get carriedBytes(): number {
    return this.#carry.length
  }

  /** The pairs that this chunk completes. */
  feed(chunk: Buffer): Pair[] {
    const pairs: Pair[] = []
    let at = 0
    while (at < chunk.length) {
      at =
        this.#open === 'none' ? this.#takeWhole(chunk, at, pairs) : this.#gather(chunk, at, pairs)
    }
    return pairs
  }

  /**
   * For a stream that ended as it should: its last line needs no line end. 'half' is a header without an update.
   */
  end(): Pair | 'half' | undefined {
    const pairs: Pair[] = []
    if (this.#open !== 'none' && this.#hasBegun) this.#gather(lineEnd, 0, pairs)
    return this.#open === 'none' ? pairs[0] : 'half'
  }

  /** A pair that lies in the chunk as a whole, as nearly all do; else it is opened. Gives where to go on. */
  #takeWhole(chunk: Buffer, at: number, pairs: Pair[]): number {
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
    let tooLarge: Pair['tooLarge']
    if (headerEnd - at > pairHeaderBytesMax) tooLarge = 'header'
    else if (end - updateStart > this.#updateLineBytesMax) tooLarge = 'update'
    pairs.push({ bytes: chunk, start: at, headerEnd, updateStart, end, tooLarge })
    return updateLine + 1
  }

  /** The next piece of the open line. Gives where to go on. */
  #gather(chunk: Buffer, at: number, pairs: Pair[]): number {
    const line = chunk.indexOf(newline, at)
    const end = line < 0 ? chunk.length : line + 1
    this.#hasBegun ||= end > at
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

  #endUpdate(): Pair {
    const start = this.#updateStart
    const end = withoutReturn(this.#carry, start, this.#carryBytes - 1)
    if (end - start > this.#updateLineBytesMax) this.#skip('update')
    const pair: Pair = {
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

  /** The pair owns its bytes from now on. */
  #close(): void {
    this.#open = 'none'
    this.#tooLarge = undefined
    this.#carry = nothing
    this.#carryBytes = 0
    this.#hasBegun = false
  }

  #skip(line: 'header' | 'update'): void {
    this.#tooLarge = line
    this.#carry = nothing
    this.#carryBytes = 0
  }

  #keep(chunk: Buffer, start: number, end: number): void {
    if (this.#tooLarge !== undefined) return
    const bytes = this.#carryBytes + end - start
    // Two bytes more than the limit may be the line end.
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

/** The end of a line whose \n is at `end`. */
function withoutReturn(bytes: Buffer, start: number, end: number): number {
  return end > start && bytes[end - 1] === carriageReturn ? end - 1 : end
}
