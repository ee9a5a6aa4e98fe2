/**
 * CRC-32C (Castagnoli), which LevelDB's log uses; Node's zlib.crc32 is the other polynomial. Eight bytes a step
 * by eight tables ("slicing-by-8").
 */

const polynomial = 0x82f63b78
/** Table k at 256 * k: the CRC of a byte followed by k zero bytes. */
const tables = makeTables()

/** The CRC of `bytes[start..end)`, unsigned. */
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

/** LevelDB stores a CRC rotated and shifted, so that the CRC of a text with CRCs in it stays meaningful. */
export function maskCrc(crc: number): number {
  return (((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0
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
