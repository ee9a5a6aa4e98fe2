/**
 * The format of a backup, the file that `postbote export` writes. It is stored permanently: do not renumber. See
 * docs/inside/storage.md. Numbers are big-endian.
 *
 *   file      magic (16) | frame 'H' | sections of the shards 0, 1, ... | frame 'Z'
 *   section   frame 'S' | frames 'R' | frame 'E'               what a server sends of one shard
 *   frame     kind (1) | length (4) | payload (length)
 *
 *   'H'  {"format":1,"began":1800000000}                       when the export began, in seconds since 1970
 *        {"format":2,"began":...,"types":["order:order.id"]}   with the added types of the server (added-type.ts), if it has any
 *   'S'  {"shard":0,"shards":8,"below":31000000,"from":0}      id-mark.ts explains the bounds; 0 if there are none
 *   'R'  key length (4) | value length (4) | key | value, for each record
 *   'E'  {"records":7,"crc":2774105215}                        the CRC-32 of all bytes of the section before this frame
 *   'Z'  {"shards":8,"records":56,"crc":1305419896}            the CRC-32 of all bytes of the file before this frame
 *
 * A file without its end, or with a changed byte, is never taken for a whole one: backup-check.ts.
 */
import { recordOf } from '../../kit/record-of.ts'
import { storedTypes } from '../../kit/added-type.ts'
import type { StoreEntry } from '../../store/store.ts'
import { mib } from '../../kit/limits.ts'

/** The first bytes of a file. */
export const backupMagic = Buffer.from('postbote backup\n')
export const backupFormat = 1
/** The format if the server has added types, which an older version does not know. */
export const typedBackupFormat = 2

/** Do not renumber: the first byte of a frame. */
const kinds = { H: 0x48, S: 0x53, R: 0x52, E: 0x45, Z: 0x5a } as const

export type BackupFrameKind = keyof typeof kinds

export interface BackupFrame {
  readonly kind: BackupFrameKind
  readonly payload: Buffer
  /** The whole frame. */
  readonly bytes: Buffer
}

/** The bytes are no backup, or not a whole one. */
export class BackupError extends Error {
  constructor(expected: string) {
    super(`the backup is damaged or incomplete: expected ${expected}`)
    this.name = 'BackupError'
  }
}

const headBytes = 5
const lengthsBytes = 8

/** Returns a frame that has fields. */
export function fieldsFrame(kind: Exclude<BackupFrameKind, 'R'>, fields: object): Buffer {
  const payload = Buffer.from(JSON.stringify(fields))
  const bytes = Buffer.allocUnsafe(headBytes + payload.length)
  writeHead(bytes, kind)
  bytes.set(payload, headBytes)
  return bytes
}

/** Returns a frame that has records. */
export function recordsFrame(entries: readonly StoreEntry[]): Buffer {
  const length = entries.reduce(
    (sum, { key, value }) => sum + lengthsBytes + key.length + value.length,
    headBytes,
  )
  const bytes = Buffer.allocUnsafe(length)
  writeHead(bytes, 'R')
  let at = headBytes
  for (const { key, value } of entries) {
    bytes.writeUInt32BE(key.length, at)
    bytes.writeUInt32BE(value.length, at + 4)
    bytes.set(key, at + lengthsBytes)
    bytes.set(value, at + lengthsBytes + key.length)
    at += lengthsBytes + key.length + value.length
  }
  return bytes
}

function writeHead(bytes: Buffer, kind: BackupFrameKind): void {
  bytes[0] = kinds[kind]
  bytes.writeUInt32BE(bytes.length - headBytes, 1)
}

/**
 * Returns the records of an `R` frame. They are parts of its payload, and not copies.
 *
 * @throws BackupError
 */
export function recordsOf({ payload }: BackupFrame): readonly StoreEntry[] {
  const entries: StoreEntry[] = []
  for (let at = 0; at < payload.length; ) {
    if (at + lengthsBytes > payload.length) throw new BackupError('the lengths of a record')
    const keyAt = at + lengthsBytes
    const valueAt = keyAt + payload.readUInt32BE(at)
    const end = valueAt + payload.readUInt32BE(at + 4)
    if (valueAt === keyAt || end > payload.length) throw new BackupError('a whole record')
    entries.push({ key: payload.subarray(keyAt, valueAt), value: payload.subarray(valueAt, end) })
    at = end
  }
  return entries
}

/**
 * Returns the fields of a frame that has fields: whole numbers from 0 on.
 *
 * @throws BackupError if one of `names` is missing
 */
export function fieldsOf<Name extends string>(
  { kind, payload }: BackupFrame,
  names: readonly Name[],
): Readonly<Record<Name, number>> {
  let fields: unknown
  try {
    fields = JSON.parse(payload.toString())
  } catch {
    throw new BackupError(`the fields of a frame ${kind}`)
  }
  const given = new Map<string, unknown>(Object.entries(Object(fields)))
  return recordOf(names, (name) => {
    const value = given.get(name)
    if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value
    throw new BackupError(`the number ${name} in a frame ${kind}`)
  })
}

/**
 * Returns the added types in the first frame of a backup.
 *
 * @throws BackupError
 */
export function typesOf({ payload }: BackupFrame): readonly string[] {
  const { types }: { readonly types?: unknown } = Object(JSON.parse(payload.toString()))
  const known = storedTypes(types)
  if (known === undefined) throw new BackupError('the added types in a frame H')
  return known
}

/** Puts frames together from bytes that arrive in any pieces. */
export class BackupFrames {
  #pieces: Buffer[] = []
  #bytes = 0
  #wanted = headBytes

  /**
   * Takes more bytes.
   *
   * @returns the frames that they complete
   * @throws BackupError if a frame is of no known kind or too large
   */
  take(piece: Buffer): readonly BackupFrame[] {
    this.#pieces.push(piece)
    this.#bytes += piece.length
    const frames: BackupFrame[] = []
    while (this.#bytes >= this.#wanted) {
      const all = Buffer.concat(this.#pieces)
      const [kind, end] = headOf(all)
      const isWhole = all.length >= end
      if (isWhole) {
        const bytes = all.subarray(0, end)
        frames.push({ kind, payload: bytes.subarray(headBytes), bytes })
      }
      const rest = isWhole ? all.subarray(end) : all
      this.#pieces = [rest]
      this.#bytes = rest.length
      this.#wanted = isWhole ? headBytes : end
    }
    return frames
  }

  /** Whether all bytes are parts of complete frames. */
  get isAtEnd(): boolean {
    return this.#bytes === 0
  }
}

/**
 * A frame of a backup may have this many bytes: a step of a snapshot ends with the record that reaches its size, and the
 * largest record is a dead letter of 4 MiB.
 */
export const backupFrameBytesMax = 8 * mib

/** Returns the kind of the frame with which the bytes begin, and where it ends. */
function headOf(bytes: Buffer): readonly [BackupFrameKind, number] {
  for (const kind of ['H', 'S', 'R', 'E', 'Z'] as const) {
    if (bytes[0] !== kinds[kind]) continue
    const length = bytes.readUInt32BE(1)
    if (length <= backupFrameBytesMax) return [kind, headBytes + length]
    throw new BackupError(`a frame of at most ${backupFrameBytesMax} bytes, got ${length}`)
  }
  throw new BackupError('a frame of a known kind')
}
