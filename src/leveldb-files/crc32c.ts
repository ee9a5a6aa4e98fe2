/**
 * CRC-32C (Castagnoli), the checksum of LevelDB's files. Node's zlib.crc32 uses another polynomial. This
 * implementation processes eight bytes in each step with eight tables ("slicing-by-8").
 */

/** The Castagnoli polynomial, bit-reversed. */
const polynomial = 0x82f63b78
/** Table k begins at 256 * k: the CRC of a byte followed by k zero bytes. */
const tables = makeTables()
/** Maps the top byte of an entry of the first table to its index. No two entries have the same top byte. */
const indexOfTopByte = makeIndexOfTopByte()

/**
 * Computes the CRC of `bytes[start..end)`.
 *
 * @returns an unsigned 32-bit number.
 */
export function crc32c(bytes: Uint8Array, start = 0, end = bytes.length): number {
  let crc = -1
  let at = start
  for (; at + 8 <= end; at += 8) {
    const low = crc ^ word(bytes, at)
    const high = word(bytes, at + 4)
    crc =
      table(7, low & 255) ^
      table(6, (low >>> 8) & 255) ^
      table(5, (low >>> 16) & 255) ^
      table(4, low >>> 24) ^
      table(3, high & 255) ^
      table(2, (high >>> 8) & 255) ^
      table(1, (high >>> 16) & 255) ^
      table(0, high >>> 24)
  }
  for (; at < end; at++) crc = table(0, (crc ^ byte(bytes, at)) & 255) ^ (crc >>> 8)
  return ~crc >>> 0
}

/**
 * Adds one byte to a CRC that is computed step by step.
 *
 * @param crc - the previous result; -1 at the beginning.
 * @param next - the byte.
 * @returns the new register; its complement is the CRC.
 */
export function crc32cStep(crc: number, next: number): number {
  return table(0, (crc ^ next) & 255) ^ (crc >>> 8)
}

/**
 * Finds the single bit that was flipped.
 *
 * @param bytes - data in which one bit may be flipped.
 * @param crc - the CRC of the original data, not masked.
 * @returns the index of the byte and the mask of the bit that restore the CRC; undefined if no single bit does.
 */
export function findFlippedBit(
  bytes: Uint8Array,
  crc: number,
): { readonly at: number; readonly mask: number } | undefined {
  return findChange(bytes, crc, (mask) => (mask & (mask - 1)) === 0)
}

/**
 * Finds the single byte that was changed, like `findFlippedBit`, but in any number of bits. Random bytes match by
 * chance with a probability of 255 / 2^32 for each byte of their length.
 *
 * @param bytes - data in which one byte may be changed.
 * @param crc - the CRC of the original data, not masked.
 * @returns the index of the byte and the mask of its bits that restore the CRC; undefined if no single byte does.
 */
export function findChangedByte(
  bytes: Uint8Array,
  crc: number,
): { readonly at: number; readonly mask: number } | undefined {
  return findChange(bytes, crc, () => true)
}

function findChange(
  bytes: Uint8Array,
  crc: number,
  isPossible: (mask: number) => boolean,
): { readonly at: number; readonly mask: number } | undefined {
  // CRCs are linear: the difference depends only on the flipped bits and on their distance from the end. Each step of
  // the loop undoes one byte of that distance.
  let difference = crc32c(bytes) ^ crc
  if (difference === 0) return undefined
  for (let at = bytes.length - 1; at >= 0; at--) {
    const index = indexOfTopByte[difference >>> 24] ?? 0
    const previous = (difference ^ table(0, index)) << 8
    // The remaining difference is what this one byte produces in an empty register.
    if (previous === 0 && isPossible(index)) return { at, mask: index }
    difference = previous | index
  }
  return undefined
}

/**
 * Masks a CRC as LevelDB stores it: rotated, plus a constant (kMaskDelta in LevelDB's util/crc32c.h). Computing the
 * CRC of data that contains CRCs would otherwise be problematic.
 */
export function maskCrc(crc: number): number {
  return (((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0
}

/** Reverts `maskCrc`. */
export function unmaskCrc(masked: number): number {
  const rotated = (masked - 0xa282ead8) >>> 0
  return ((rotated >>> 17) | (rotated << 15)) >>> 0
}

function makeTables(): Int32Array {
  const made = new Int32Array(8 * 256)
  for (let value = 0; value < 256; value++) {
    let crc = value
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ polynomial : crc >>> 1
    made[value] = crc
  }
  for (let at = 256; at < made.length; at++) {
    const before = made[at - 256] ?? 0
    made[at] = (made[before & 255] ?? 0) ^ (before >>> 8)
  }
  return made
}

function makeIndexOfTopByte(): Uint8Array {
  const made = new Uint8Array(256)
  for (let index = 0; index < 256; index++) made[table(0, index) >>> 24] = index
  return made
}

function table(index: number, value: number): number {
  return tables[index * 256 + value] ?? 0
}

function byte(bytes: Uint8Array, at: number): number {
  return bytes[at] ?? 0
}

function word(bytes: Uint8Array, at: number): number {
  return (
    byte(bytes, at) |
    (byte(bytes, at + 1) << 8) |
    (byte(bytes, at + 2) << 16) |
    (byte(bytes, at + 3) << 24)
  )
}
