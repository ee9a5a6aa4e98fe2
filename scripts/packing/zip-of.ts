/**
 * A zip archive (APPNOTE 6.3) that is the same whenever it is made: entries are sorted, have the earliest time that the format
 * knows, and are not compressed, so that the version of zlib makes no difference. The archives of clients are small.
 */
import { crc32 } from 'node:zlib'

/** 1980-01-01, in the format of MS-DOS. */
const earliestDate = 0x21
const versionNeeded = 20
/** Names are in UTF-8. */
const flags = 0x800
/** Unix, and a regular file that everyone may read. */
const madeBy = 0x314
const mode = 0o100_644

/** Returns the archive of these files. */
export function zipOf(files: ReadonlyMap<string, Buffer>): Buffer {
  const locals: Buffer[] = []
  const directory: Buffer[] = []
  let at = 0
  const sorted = [...files].toSorted(([a], [b]) => (a < b ? -1 : 1))
  for (const [name, content] of sorted) {
    const nameBytes = Buffer.from(name)
    // What the header of a file and its entry in the directory have in common.
    const common = Buffer.alloc(26)
    common.writeUInt16LE(versionNeeded, 0)
    common.writeUInt16LE(flags, 2)
    common.writeUInt16LE(earliestDate, 8)
    common.writeUInt32LE(crc32(content), 10)
    common.writeUInt32LE(content.length, 14)
    common.writeUInt32LE(content.length, 18)
    common.writeUInt16LE(nameBytes.length, 22)
    const local = Buffer.concat([Buffer.from('PK\x03\x04'), common, nameBytes, content])
    const start = Buffer.from('PK\x01\x02\0\0')
    start.writeUInt16LE(madeBy, 4)
    const rest = Buffer.alloc(14)
    rest.writeUInt32LE(mode * 0x1_0000, 6)
    rest.writeUInt32LE(at, 10)
    directory.push(Buffer.concat([start, common, rest, nameBytes]))
    locals.push(local)
    at += local.length
  }
  const list = Buffer.concat(directory)
  const end = Buffer.alloc(22)
  end.write('PK\x05\x06', 'latin1')
  end.writeUInt16LE(sorted.length, 8)
  end.writeUInt16LE(sorted.length, 10)
  end.writeUInt32LE(list.length, 12)
  end.writeUInt32LE(at, 16)
  return Buffer.concat([...locals, list, end])
}
