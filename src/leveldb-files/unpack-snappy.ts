/**
 * Unpacks a block packed by Snappy as far as possible. The package `snappyjs` unpacks only undamaged blocks: it
 * throws at the first damage and discards what it has unpacked. The format is specified in Snappy's
 * format_description.txt:
 *
 *     length of the unpacked bytes (varint) | elements
 *     element   tag (1): its two low bits are the kind
 *       0  literal   (tag >> 2) + 1 bytes follow; 60 to 63 mean that this number minus one is in 1 to 4 bytes (LE)
 *       1  copy      4 + (tag >> 2 & 7) bytes from (tag >> 5) * 256 + next byte before the end
 *       2  copy      (tag >> 2) + 1 bytes; distance in 2 bytes (LE)
 *       3  copy      (tag >> 2) + 1 bytes; distance in 4 bytes (LE)
 */
import { LevelCursor } from './level-cursor.ts'

/** A copy of 3 bytes stands for up to 64 bytes, and no element packs more into one byte. */
const unpackedPerByteMax = 22

/** The result of unpacking a block. */
export interface Unpacked {
  readonly bytes: Buffer
  /** False if the packed bytes ended too early or too late, or were invalid from some point on. */
  readonly isWhole: boolean
}

/**
 * Unpacks a block from its beginning up to the first damage.
 *
 * @param packed - the packed bytes.
 * @param bytesMax - maximum number of unpacked bytes. A longer block is unpacked up to there, and `isWhole` is false.
 */
export function unpackSnappy(
  packed: Buffer,
  bytesMax = packed.length * unpackedPerByteMax,
): Unpacked {
  const cursor = new LevelCursor(packed)
  const length = cursor.varint()
  if (length === undefined) return { bytes: Buffer.alloc(0), isWhole: false }
  const target = Buffer.allocUnsafe(Math.min(length, bytesMax))
  const unpacker = new Unpacker(packed, cursor.at, target)
  const filled = unpacker.run()
  return { bytes: target.subarray(0, filled), isWhole: unpacker.isAtEnd && filled === length }
}

class Unpacker {
  readonly #packed: Buffer
  readonly #bytes: Buffer
  #at: number
  #filled = 0

  constructor(packed: Buffer, at: number, bytes: Buffer) {
    this.#packed = packed
    this.#at = at
    this.#bytes = bytes
  }

  get isAtEnd(): boolean {
    return this.#at === this.#packed.length
  }

  /** Unpacks up to the first invalid element and returns the number of unpacked bytes. */
  run(): number {
    while (this.#at < this.#packed.length) {
      const tag = this.#packed[this.#at++] ?? 0
      const isSound = (tag & 3) === 0 ? this.#literal(tag) : this.#copy(tag)
      if (!isSound) break
    }
    return this.#filled
  }

  #literal(tag: number): boolean {
    const short = tag >>> 2
    const lengthBytes = short < 60 ? 0 : short - 59
    if (this.#at + lengthBytes > this.#packed.length) return false
    const length = 1 + (lengthBytes === 0 ? short : this.#packed.readUIntLE(this.#at, lengthBytes))
    this.#at += lengthBytes
    // If a literal is cut off, the bytes that are there are right.
    const copied = this.#packed.copy(this.#bytes, this.#filled, this.#at, this.#at + length)
    this.#filled += copied
    this.#at += copied
    return copied === length
  }

  #copy(tag: number): boolean {
    const kind = tag & 3
    const distanceBytes = kind === 3 ? 4 : kind
    if (this.#at + distanceBytes > this.#packed.length) return false
    const low = this.#packed.readUIntLE(this.#at, distanceBytes)
    this.#at += distanceBytes
    const distance = kind === 1 ? (tag >>> 5) * 256 + low : low
    const length = kind === 1 ? 4 + ((tag >>> 2) & 7) : (tag >>> 2) + 1
    if (distance === 0 || distance > this.#filled) return false
    if (this.#filled + length > this.#bytes.length) return false
    // Copies byte by byte, because source and target overlap if a pattern is repeated.
    for (let end = this.#filled + length; this.#filled < end; this.#filled++) {
      this.#bytes[this.#filled] = this.#bytes[this.#filled - distance] ?? 0
    }
    return true
  }
}
