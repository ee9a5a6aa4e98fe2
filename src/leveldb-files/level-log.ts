/**
 * Reads a file in LevelDB's log format (its `*.log` and `MANIFEST-*` files), damaged or not.
 *
 *     file    32 KiB blocks; a block ends with zeros if fewer than 7 bytes are left
 *     piece   masked CRC-32C of type and payload (4 LE) | payload length (2 LE) | type (1) | payload
 *     type    1 FULL, 2 FIRST, 3 MIDDLE, 4 LAST: a record is one FULL, or FIRST MIDDLE* LAST
 *
 * At a bad piece, LevelDB drops the rest of its block. This reader searches the rest byte by byte for the next piece
 * with a matching CRC (four random bytes match once in 2^32 cases). A record that lost its end is returned as far as
 * it goes.
 *
 * The end that a crash leaves is not damage (`tail`). It begins at a piece that cannot be read and after which no
 * record begins: cut off, zeros, or whatever was on the disk before. It was never synced, because a synced record is
 * complete or followed by others. Damage of the record that was synced last looks similar. It counts as damage if
 *
 *   one byte of the piece has changed: its CRC shows this, whichever byte it is
 *   the piece ends where the file ends and lies in one sector, which a disk writes completely or not at all
 *
 * Any other damage of the last record of the last log, such as a damaged sector or a cut, is taken for a tail, unless
 * the database was closed cleanly (`CloseRecord`).
 */
import { crc32c, findChangedByte, maskCrc, unmaskCrc } from './crc32c.ts'

/** Block size, header size and types: LevelDB's db/log_format.h. */
const blockBytes = 32 * 1024
const headerBytes = 7
/** The unit that a disk writes completely or not at all. */
const sectorBytes = 512
const fullType = 1
const firstType = 2
const middleType = 3
const lastType = 4

/** A record of a log. */
export interface LevelLogRecord {
  /** Offset of its first piece in the file, in bytes. */
  readonly offset: number
  readonly payload: Buffer
  /** False if only the beginning could be read. */
  readonly isWhole: boolean
}

/** A place where the file is damaged. */
export interface LevelLogFault {
  readonly offset: number
  readonly reason: string
}

/** What a log holds. */
export interface LevelLog {
  readonly records: readonly LevelLogRecord[]
  readonly faults: readonly LevelLogFault[]
  /**
   * An incomplete end, as a crash leaves it. In a log that was not written last, it is damage too. `begun` is the
   * record that it interrupts.
   */
  readonly tail: (LevelLogFault & { readonly begun: LevelLogRecord | undefined }) | undefined
}

/** What is known about a log from elsewhere. */
export interface LogPast {
  /** Whether it was written last, so that an incomplete end is what a crash leaves. */
  readonly isLast: boolean
  /** Its length in bytes when the database was closed cleanly; undefined after a crash. */
  readonly closedBytes: number | undefined
}

/**
 * Reads a log and decides whether an end that cannot be read was never synced. Otherwise the end is one of the faults.
 *
 * @param bytes - the contents of the file.
 */
export function judgeLevelLog(bytes: Buffer, { isLast, closedBytes }: LogPast): LevelLog {
  const reader = new Reader(bytes)
  reader.run()
  const { records, faults, tail } = reader
  if (closedBytes === undefined && (isLast || tail === undefined)) return { records, faults, tail }
  const begun = tail?.begun
  const known = tail === undefined ? faults : [...faults, tail]
  const isChanged = closedBytes !== undefined && bytes.length !== closedBytes
  const offset = Math.min(bytes.length, closedBytes ?? 0)
  const reason = `the file has ${bytes.length} bytes, and had ${closedBytes} when it was closed`
  return {
    records: begun === undefined ? records : [...records, begun],
    faults: known.length === 0 && isChanged ? [{ offset, reason }] : known,
    tail: undefined,
  }
}

interface Piece {
  readonly offset: number
  readonly type: number
  readonly payload: Buffer
  readonly end: number
}

class Reader implements LevelLog {
  readonly records: LevelLogRecord[] = []
  readonly faults: LevelLogFault[] = []
  tail: LevelLog['tail']
  /** Number of faults after which another record begins. */
  #faultsPassed = 0
  readonly #bytes: Buffer
  /** Pieces of a record whose end has not been found yet. */
  #begun: Piece[] = []
  /** Whether a reported fault already explains why a record has no beginning. */
  #isExplained = false

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  run(): void {
    let at = 0
    while (at < this.#bytes.length) {
      const blockEnd = Math.min(at - (at % blockBytes) + blockBytes, this.#bytes.length)
      const isFullBlock = blockEnd % blockBytes === 0
      if (isFullBlock && blockEnd - at < headerBytes) {
        at = blockEnd
        continue
      }
      const piece = this.#pieceAt(at, blockEnd)
      if (piece === undefined) {
        const next = this.#skip(at, blockEnd)
        if (next === undefined) return this.#judgeEnd()
        at = next
      } else {
        this.#take(piece)
        at = piece.end
      }
    }
    if (this.#begun.length > 0) this.#setTail(this.#bytes.length, 'the last record has no end')
    this.#judgeEnd()
  }

  /** Pieces without a beginning that follow a fault belong to the record that was being written there. */
  #judgeEnd(): void {
    const [first] = this.faults.slice(this.#faultsPassed)
    if (first === undefined || this.#isChanged(first.offset)) return
    this.faults.length = this.#faultsPassed
    const begun = this.records.at(-1)?.isWhole === false ? this.records.pop() : undefined
    this.tail = { offset: first.offset, reason: 'the end was not written', begun }
  }

  /** Returns whether the piece was written completely and has changed since. */
  #isChanged(offset: number): boolean {
    const size = this.#bytes.length
    if (offset + headerBytes > size) return false
    const blockEnd = Math.min(offset - (offset % blockBytes) + blockBytes, size)
    const stored = this.#bytes.readUInt32LE(offset)
    const length = this.#bytes.readUInt16LE(offset + 4)
    const end = offset + headerBytes + length
    if (end <= blockEnd) {
      const type = this.#bytes[offset + 6] ?? 0
      const isInOneSector = Math.floor(offset / sectorBytes) === Math.floor((end - 1) / sectorBytes)
      if (end === size && isInOneSector && type >= fullType && type <= lastType) return true
      const covered = this.#bytes.subarray(offset + 6, end)
      const difference = maskCrc(crc32c(covered)) ^ stored
      if (isOneByte(difference)) return true
      if (findChangedByte(covered, unmaskCrc(stored)) !== undefined) return true
    }
    return this.#isOfAnotherLength(offset, blockEnd)
  }

  /** Returns whether one byte of the length has changed, and nothing else. */
  #isOfAnotherLength(offset: number, blockEnd: number): boolean {
    const length = this.#bytes.readUInt16LE(offset + 4)
    const stored = this.#bytes.readUInt32LE(offset)
    for (const shift of [0, 8]) {
      for (let byte = 0; byte < 256; byte++) {
        const other = (length & ~(255 << shift)) | (byte << shift)
        const end = offset + headerBytes + other
        if (end <= blockEnd && maskCrc(crc32c(this.#bytes, offset + 6, end)) === stored) return true
      }
    }
    return false
  }

  #pieceAt(offset: number, blockEnd: number): Piece | undefined {
    if (offset + headerBytes > blockEnd) return undefined
    const end = offset + headerBytes + this.#bytes.readUInt16LE(offset + 4)
    const type = this.#bytes[offset + 6] ?? 0
    if (type < fullType || type > lastType || end > blockEnd) return undefined
    const crc = maskCrc(crc32c(this.#bytes, offset + 6, end))
    if (crc !== this.#bytes.readUInt32LE(offset)) return undefined
    return { offset, type, payload: this.#bytes.subarray(offset + headerBytes, end), end }
  }

  /** Returns where the next good piece begins. If there is none, returns undefined, and the caller judges the end. */
  #skip(offset: number, blockEnd: number): number | undefined {
    let end = blockEnd
    for (let at = offset + 1; at < this.#bytes.length; at++) {
      if (at === end) end = Math.min(end + blockBytes, this.#bytes.length)
      if (this.#pieceAt(at, end) !== undefined) {
        this.#addFault(offset, this.#reasonAt(offset, blockEnd))
        return at
      }
    }
    if (this.#isCutOff(offset, blockEnd)) this.#setTail(offset, 'the end was not written')
    else this.#addFault(offset, this.#reasonAt(offset, blockEnd))
    return undefined
  }

  #isCutOff(offset: number, blockEnd: number): boolean {
    const size = this.#bytes.length
    if (offset + headerBytes > size) return true
    const isLastBlock = blockEnd === size
    const type = this.#bytes[offset + 6] ?? 0
    const end = offset + headerBytes + this.#bytes.readUInt16LE(offset + 4)
    if (isLastBlock && type >= fullType && type <= lastType && end > size) {
      // A piece never crosses the end of its block, so a longer length was not written.
      return end <= offset - (offset % blockBytes) + blockBytes
    }
    const lastSector = Math.max(offset, size - 1 - ((size - 1) % sectorBytes))
    return this.#bytes.subarray(lastSector).every((value) => value === 0)
  }

  #reasonAt(offset: number, blockEnd: number): string {
    if (offset + headerBytes > blockEnd) return 'a header is cut off'
    const type = this.#bytes[offset + 6] ?? 0
    if (type < fullType || type > lastType) return `unknown type ${type}`
    const end = offset + headerBytes + this.#bytes.readUInt16LE(offset + 4)
    return end > blockEnd ? 'length past the end of the block' : 'checksum mismatch'
  }

  #take(piece: Piece): void {
    const begins = piece.type === fullType || piece.type === firstType
    if (begins) {
      if (this.#begun.length > 0) this.#addFault(piece.offset, 'a record has no end')
      this.#faultsPassed = this.faults.length
      this.#isExplained = false
    } else if (this.#begun.length === 0) {
      if (!this.#isExplained) this.#addFault(piece.offset, 'a record has no beginning')
      this.#isExplained = piece.type === middleType
      return
    }
    this.#begun.push(piece)
    if (piece.type === fullType || piece.type === lastType) this.#finish(true)
  }

  #addFault(offset: number, reason: string): void {
    this.faults.push({ offset, reason })
    this.#isExplained = true
    this.#finish(false)
  }

  #finish(isWhole: boolean): void {
    const record = this.#assemble(isWhole)
    if (record !== undefined) this.records.push(record)
    this.#begun = []
  }

  #setTail(offset: number, reason: string): void {
    this.tail = { offset, reason, begun: this.#assemble(false) }
  }

  #assemble(isWhole: boolean): LevelLogRecord | undefined {
    const [first, ...others] = this.#begun
    if (first === undefined) return undefined
    const payload =
      others.length === 0
        ? first.payload
        : Buffer.concat([first.payload, ...others.map((piece) => piece.payload)])
    return { offset: first.offset, payload, isWhole }
  }
}

/** Returns whether exactly one of the four bytes of a number is not 0. */
function isOneByte(number: number): boolean {
  const bytes = [number & 255, (number >>> 8) & 255, (number >>> 16) & 255, number >>> 24]
  return bytes.filter((byte) => byte !== 0).length === 1
}
