/**
 * Unpacks a block that Snappy packed, as far as it can be unpacked. The package `snappyjs` unpacks only whole
 * blocks: it throws at the first damage, and what was unpacked before is gone. The format is that of Snappy's
 * format_description.txt:
 *
 *     length of the unpacked bytes (varint) | elements
 *     element   tag (1): its two low bits are the kind
 *       0  literal   (tag >> 2) + 1 bytes follow; 60 to 63 say that this number minus one is in 1 to 4 bytes (LE)
 *       1  copy      4 + (tag >> 2 & 7) bytes from (tag >> 5) * 256 + next byte before the end
 *       2  copy      (tag >> 2) + 1 bytes; distance in 2 bytes (LE)
 *       3  copy      (tag >> 2) + 1 bytes; distance in 4 bytes (LE)
 */

import { LevelCursor } from './level-cursor.ts'

/** A copy of 3 bytes stands for up to 64: no element packs more into one byte. */
const unpackedPerByteMax = 22

export interface Unpacked {
  readonly bytes: Buffer
  /** False where the packed bytes ended too early, too late, or made no sense from some point on. */
  readonly isWhole: boolean
}

/**
 * @param packed - the packed bytes.
 * @param bytesMax - stop after so many unpacked bytes; a block that is longer is not whole then.
 * @returns what could be unpacked, from the beginning.
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

  /** Unpacks until the first element that cannot be, and returns how many bytes it has made. */
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
    // Of a literal that is cut off, what is there is right.
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
    // Byte by byte: source and target overlap where a pattern is repeated.
    for (let end = this.#filled + length; this.#filled < end; this.#filled++) {
      this.#bytes[this.#filled] = this.#bytes[this.#filled - distance] ?? 0
    }
    return true
  }
}
