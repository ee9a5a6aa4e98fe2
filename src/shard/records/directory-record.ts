/**
 * `postbote.json`: what was fixed when a data directory was created, and the version of its format.
 *
 *     {"format":3,"shards":8,"made":true}
 *     {"format":4,"shards":8,"made":true,"types":["order:order.id","ping"]}
 *
 *   format   3, and 4 once there is an added type, which an older server does not know. Formats 1 and 2 were those of
 *            servers before 1.0, and are refused.
 *   shards   the number of shards, which determines the shard of every bot
 *   made     false until all shards have their directories. After that, a missing shard is lost and not new.
 *   types    the added types (added-type.ts), in the order of their numbers; only in format 4
 */
import { join } from 'node:path'
import { storedTypes } from '../../kit/added-type.ts'
import { shardsMax } from '../../kit/limits.ts'
import { readIfThere } from '../../store/read-if-there.ts'
import { writeFileAtomically } from '../../store/write-file.ts'

/** What is written without added types, and with them. */
const formatVersion = 3
const typedFormatVersion = 4
export const directoryRecordName = 'postbote.json'

export interface DirectoryRecord {
  readonly shards: number
  readonly isMade: boolean
  /** The added types, as they are stored. */
  readonly types: readonly string[]
}

/**
 * Reads the record.
 *
 * @param directory - the data directory.
 * @returns undefined if there is no record.
 * @throws Error naming the file if it is not a valid record or has another format.
 */
export async function readDirectoryRecord(directory: string): Promise<DirectoryRecord | undefined> {
  const path = join(directory, directoryRecordName)
  const text = (await readIfThere(path))?.toString()
  if (text === undefined) return undefined
  const fields = parse(text)
  const { format } = fields
  if (typeof format === 'number' && format !== formatVersion && format !== typedFormatVersion) {
    const advice =
      format < formatVersion
        ? 'an older Postbote, from before 1.0, made it, and only that one can read it'
        : 'a newer Postbote made it: use the version that wrote it, or a later one'
    throw new Error(
      `${path} has format ${format}, but this version knows only formats ${formatVersion} and ${typedFormatVersion}; ${advice}`,
    )
  }
  const record = recordIn(fields)
  if (record !== undefined) return record
  const expected =
    format === typedFormatVersion
      ? `{"format":${format},"shards":N,"made":true,"types":["TYPE"]}`
      : `{"format":${formatVersion},"shards":N,"made":true}`
  throw new Error(`expected ${expected} in ${path}, got ${JSON.stringify(text.slice(0, 100))}`)
}

/** Returns undefined for fields of no valid record. */
function recordIn({ format, shards, made, types }: Fields): DirectoryRecord | undefined {
  if (typeof format !== 'number' || typeof made !== 'boolean') return undefined
  if (!isShardCount(shards)) return undefined
  const known = format === typedFormatVersion ? storedTypes(types) : []
  return known === undefined ? undefined : { shards, types: known, isMade: made }
}

export async function writeDirectoryRecord(
  directory: string,
  { shards, isMade, types }: DirectoryRecord,
): Promise<void> {
  const fields = { shards, made: isMade }
  const record = JSON.stringify(
    types.length === 0
      ? { format: formatVersion, ...fields }
      : { format: typedFormatVersion, ...fields, types },
  )
  await writeFileAtomically(join(directory, directoryRecordName), `${record}\n`, 0o600)
}

export function isShardCount(shards: unknown): shards is number {
  return (
    typeof shards === 'number' &&
    Number.isInteger(shards) &&
    shards >= 1 &&
    shards <= shardsMax &&
    (shards & (shards - 1)) === 0
  )
}

type Fields = Readonly<Record<'format' | 'shards' | 'made' | 'types', unknown>>

function parse(text: string): Fields {
  const nothing = { format: undefined, shards: undefined, made: undefined, types: undefined }
  try {
    const record: unknown = JSON.parse(text)
    return typeof record === 'object' && record !== null ? { ...nothing, ...record } : nothing
  } catch {
    return nothing
  }
}
