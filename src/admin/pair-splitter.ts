/**
 * Splits an NDJSON stream of pairs of lines (SPEC 9: a header, then its update) as its chunks arrive.
 *
 * A line within one chunk is a view of it; one that spans chunks is gathered in a buffer that grows up to the
 * line's limit and not beyond: a longer line is skipped, and its pair fails alone. Where a header is expected empty
 * lines are skipped; an empty line behind a header is that pair's (bad) update, so that the next pair is still read
 * as one. `\r\n` ends a line as `\n` does.
 */

import { pairHeaderBytesMax, streamCarryBytesMin } from '../limits.ts'

/** Both are views, without their line ends: of a chunk given, or of a buffer nobody else holds. */
export interface Pair {
  readonly header: Buffer
  readonly update: Buffer
}

/** A pair one of whose lines is over its limit. */
export interface OversizePair {
  readonly tooLarge: 'header' | 'update'
  /** Undefined where the header itself was too large. */
  readonly header: Buffer | undefined
}

export interface PairSplitterOptions {
  /** Leave room for the braces and white space around the longest text. */
  readonly updateLineBytesMax: number
}

const newline = 0x0a
const carriageReturn = 0x0d

export class PairSplitter {
  readonly #updateLineBytesMax: number
  /** The header whose update is expected next; undefined where a header is. */
  #header: Buffer | 'tooLarge' | undefined
  /** The beginning of a line whose end has not come yet. */
  #carry = Buffer.alloc(0)
  #carryBytes = 0
  #isSkipping = false

  constructor(options: PairSplitterOptions) {
    this.#updateLineBytesMax = options.updateLineBytesMax
  }

  /** The pairs that this chunk completes. */
  feed(chunk: Buffer): (Pair | OversizePair)[] {
    const pairs: (Pair | OversizePair)[] = []
    let at = 0
    while (at < chunk.length) {
      const end = chunk.indexOf(newline, at)
      if (end < 0) {
        this.#keep(chunk, at)
        break
      }
      const pair = this.#take(this.#line(chunk, at, end))
      if (pair !== undefined) pairs.push(pair)
      at = end + 1
    }
    return pairs
  }

  /**
   * For a stream that ended as it should: its last line needs no line end. 'half' is a header without an update.
   */
  end(): Pair | OversizePair | 'half' | undefined {
    const hasLine = this.#carryBytes > 0 || this.#isSkipping
    const pair = hasLine ? this.#take(this.#line(Buffer.alloc(0), 0, 0)) : undefined
    const isHalf = this.#header !== undefined
    this.#header = undefined
    return isHalf ? 'half' : pair
  }

  get #lineBytesMax(): number {
    if (this.#header === undefined) return pairHeaderBytesMax
    // Nobody reads the update behind a header that was skipped.
    return this.#header === 'tooLarge' ? 0 : this.#updateLineBytesMax
  }

  #take(line: Buffer | 'tooLarge'): Pair | OversizePair | undefined {
    const header = this.#header
    if (header === undefined) {
      if (line.length > 0) this.#header = line
      return undefined
    }
    this.#header = undefined
    if (header === 'tooLarge') return { tooLarge: 'header', header: undefined }
    return line === 'tooLarge' ? { tooLarge: 'update', header } : { header, update: line }
  }

  /** The line that ends at `end`, with what was kept of it from earlier chunks. */
  #line(chunk: Buffer, start: number, end: number): Buffer | 'tooLarge' {
    let line = chunk.subarray(start, end)
    if (this.#carryBytes > 0) {
      this.#keep(line, 0)
      line = this.#carry.subarray(0, this.#carryBytes)
      // The pair owns these bytes from now on.
      this.#carry = Buffer.alloc(0)
      this.#carryBytes = 0
    }
    const isTooLarge = this.#isSkipping
    this.#isSkipping = false
    if (line[line.length - 1] === carriageReturn) line = line.subarray(0, -1)
    return isTooLarge || line.length > this.#lineBytesMax ? 'tooLarge' : line
  }

  #keep(chunk: Buffer, start: number): void {
    if (this.#isSkipping) return
    const bytes = this.#carryBytes + chunk.length - start
    // One byte more than the limit may be the \r of the line end.
    if (bytes > this.#lineBytesMax + 1) {
      this.#isSkipping = true
      this.#carry = Buffer.alloc(0)
      this.#carryBytes = 0
      return
    }
    if (bytes > this.#carry.length) {
      const grown = Buffer.allocUnsafe(Math.max(bytes, 2 * this.#carry.length, streamCarryBytesMin))
      this.#carry.copy(grown, 0, 0, this.#carryBytes)
      this.#carry = grown
    }
    chunk.copy(this.#carry, this.#carryBytes, start)
    this.#carryBytes = bytes
  }
}
