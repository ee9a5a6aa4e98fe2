/**
 * Splits an NDJSON stream of pairs of lines (protocol.md §9: a header, then its update) into rows as its chunks arrive.
 *
 * A pair within one chunk stays in that chunk, and native code makes its row (native-bindings/split_pairs.c). A pair that
 * spans chunks is gathered in a buffer that grows up to the limits of its lines. A longer line is skipped, and only its pair
 * fails.
 *
 * Empty lines where a header is expected are skipped. An empty line after a header is that pair's (bad) update, so the
 * next pair is still recognized. `\r\n` ends a line as `\n` does. A byte order mark at the beginning is skipped.
 */
import { pairScanner } from '../../../native-bindings/pair-scanner.ts'
import { ByteOrderMarkSkipper } from '../../http/body.ts'
import { botIdMax, botIdMin, kib, orderingKeyBytesMax, ttlSMax } from '../../kit/limits.ts'
import { idempotencyKeyLengthMax, pairHeaderBytesMax } from '../../api/limits.ts'
import {
  flagsColumn,
  headerTooLargeFlag,
  rowLength,
  typeColumn,
  uncheckedType,
  UpdateRows,
  updateTooLargeFlag,
} from '../../shard/update-rows.ts'

/** The limits of a PairSplitter. */
export interface PairSplitterOptions {
  /** Limit for an update line, in bytes. It must include the braces and white space around the longest text. */
  readonly updateLineBytesMax: number
  /** This many pairs are together at most; 256 without it. */
  readonly rowsMax?: number
  /** Whether headers may have places in traces. Default: false. */
  readonly isTraced?: boolean
}

const newline = 0x0a
const carriageReturn = 0x0d
const nothing: Buffer = Buffer.alloc(0)
const lineEnd = Buffer.of(newline)

/** The buffer for the beginning of a line has this size at first and doubles up to the longest line; usual pairs fit. */
const streamCarryBytesMin = 1 * kib

/** Pairs of one stream are handled in slices of this many, so that other streams have their turn in between. */
export const streamSlicePairs = 256
/** The rows that are being made. All splitters share them because a split runs to its end without a pause. */
const drafts = new Int32Array(streamSlicePairs * rowLength)
const draftBots = new Float64Array(streamSlicePairs)
const from = new Int32Array(1)

/** Splits one stream. */
export class PairSplitter {
  readonly #updateLineBytesMax: number
  /** The places for the bots of the pairs that are together. */
  readonly #bots: Float64Array
  /** As split_pairs.c lists them. */
  readonly #limits: Float64Array
  readonly #mark = new ByteOrderMarkSkipper()
  /** The line that is being gathered, of a pair that began in an earlier chunk. */
  #open: 'none' | 'header' | 'update' = 'none'
  #tooLarge: 'header' | 'update' | undefined
  /** The bytes gathered of that pair, unless one of its lines is skipped. */
  #carry: Buffer = nothing
  #carryBytes = 0
  #updateStart = 0
  /** Whether the open line has any bytes yet. */
  #hasBegun = false
  #pairBytes = 0

  constructor(options: PairSplitterOptions) {
    this.#updateLineBytesMax = options.updateLineBytesMax
    this.#bots = draftBots.subarray(0, options.rowsMax ?? streamSlicePairs)
    this.#limits = Float64Array.of(
      pairHeaderBytesMax,
      options.updateLineBytesMax,
      botIdMin,
      botIdMax,
      orderingKeyBytesMax,
      idempotencyKeyLengthMax,
      ttlSMax,
      options.isTraced === true ? 1 : 0,
    )
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
   * @param chunk - The next bytes of the stream. The returned rows refer to them, or to a buffer that nothing else uses.
   * @returns The pairs that this chunk completes. The headers of some are not read, and no update is checked.
   */
  feed(chunk: Buffer): UpdateRows[] {
    return this.#feed(this.#mark.skip(chunk))
  }

  #feed(chunk: Buffer): UpdateRows[] {
    const found: UpdateRows[] = []
    let at = 0
    while (at < chunk.length) {
      at =
        this.#open === 'none' ? this.#takeWhole(chunk, at, found) : this.#gather(chunk, at, found)
    }
    return found
  }

  /**
   * Ends a stream that was complete. The last line needs no line end.
   *
   * @returns The last pair; 'half' if the stream ended after a header; undefined if it ended between pairs.
   */
  end(): UpdateRows | 'half' | undefined {
    const found = this.#feed(this.#mark.rest())
    if (this.#open !== 'none' && this.#hasBegun) this.#gather(lineEnd, 0, found)
    return this.#open === 'none' ? found[0] : 'half'
  }

  /** Takes pairs that are completely in the chunk, as nearly all are; opens one that is not. Returns where to continue. */
  #takeWhole(chunk: Buffer, at: number, found: UpdateRows[]): number {
    const count = this.#split(chunk, at)
    if (count > 0) found.push(draftsOf(chunk, count))
    const next = from[0] ?? 0
    if (count < this.#bots.length && next < chunk.length) this.#open = 'header'
    return next
  }

  /** Makes the rows of the complete pairs in `bytes`, as many as fit, and returns their number. */
  #split(bytes: Buffer, at: number): number {
    from[0] = at
    return pairScanner().splitPairs(bytes, from, drafts, this.#bots, this.#limits)
  }

  /** Takes the next piece of the open line. Returns where to continue. */
  #gather(chunk: Buffer, at: number, found: UpdateRows[]): number {
    const line = chunk.indexOf(newline, at)
    const end = line < 0 ? chunk.length : line + 1
    this.#hasBegun ||= end > at
    this.#pairBytes += end - at
    this.#keep(chunk, at, end)
    if (line < 0) return end
    if (this.#open === 'header') this.#endHeader()
    else found.push(this.#endUpdate())
    return end
  }

  #endHeader(): void {
    const headerEnd = withoutReturn(this.#carry, 0, this.#carryBytes - 1)
    this.#updateStart = this.#carryBytes
    if (this.#tooLarge === undefined && headerEnd === 0) return this.#close()
    this.#open = 'update'
    this.#hasBegun = false
    if (headerEnd > pairHeaderBytesMax) this.#skip('header')
  }

  #endUpdate(): UpdateRows {
    if (this.#tooLarge === undefined) this.#split(this.#carry.subarray(0, this.#carryBytes), 0)
    else {
      drafts.fill(0, 0, rowLength)
      drafts[typeColumn] = uncheckedType
      draftBots[0] = Number.NaN
      drafts[flagsColumn] = this.#tooLarge === 'header' ? headerTooLargeFlag : updateTooLargeFlag
    }
    const rows = draftsOf(this.#carry, 1)
    this.#close()
    return rows
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

function draftsOf(bytes: Buffer, count: number): UpdateRows {
  return new UpdateRows(bytes, drafts.slice(0, count * rowLength), draftBots.slice(0, count))
}

/** Returns the end of a line whose `\n` is at `end`. */
function withoutReturn(bytes: Buffer, start: number, end: number): number {
  return end > start && bytes[end - 1] === carriageReturn ? end - 1 : end
}
