/** Who may use the data directory and the admin key. */
import { access, constants, stat } from 'node:fs/promises'
import { type AddedType, AddedTypesError, numberedTypes } from '../../kit/added-type.ts'
import { messageOf } from '../../kit/errors.ts'
import { damagedFiles, readAdminKey } from '../../shard/data-directory.ts'
import { readDirectoryRecord } from '../../shard/records/directory-record.ts'
import { shardTroubles } from '../../shard/recovery/shard-marks.ts'
import { isOpenToAll } from '../../store/open-to-all.ts'
import { isMissing } from '../../store/read-if-there.ts'
import { levelEngine } from '../../store/level/level-engine.ts'
import { bad, type Finding, good, warn } from '../../kit/finding.ts'
import { damageText } from '../../store/shard-damaged.ts'

export interface DirectoryFacts {
  /** The data directory. */
  readonly directory: string
  /** The data directory, or the nearest one above it that exists. */
  readonly existing: string
  /** `--admin-key-file` */
  readonly keyFile: string | undefined
  /** The added types that the options name. */
  readonly types?: readonly AddedType[]
}

export async function examineDirectory(facts: DirectoryFacts): Promise<readonly Finding[]> {
  const { directory, existing, keyFile, types = [] } = facts
  const isNew = existing !== directory
  return [
    await accessFinding(directory, existing),
    ...(isNew ? [] : await ownerFindings(directory)),
    ...(isNew ? [] : await typeFindings(directory, types)),
    ...(isNew ? [] : await damageFindings(directory)),
    ...(isNew ? [] : await copyFindings(directory)),
    ...(isNew && keyFile === undefined ? [] : await keyFindings(directory, keyFile)),
  ]
}

async function accessFinding(directory: string, existing: string): Promise<Finding> {
  try {
    if (!(await stat(existing)).isDirectory()) {
      return bad(`${existing} is not a directory: choose another --dir`)
    }
    await access(existing, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch {
    return bad(
      `this user may not write to ${existing}: run the server as its owner, or choose another --dir`,
    )
  }
  return good(
    existing === directory
      ? `this user may write to the data directory ${directory}`
      : `the first start creates the data directory ${directory}`,
  )
}

async function ownerFindings(directory: string): Promise<readonly Finding[]> {
  const { uid, mode } = await stat(directory)
  const isOwn = uid === process.getuid?.()
  if ((mode & 0o077) === 0) return [good(`no other user may read ${directory}`)]
  if (isOwn)
    return [warn(`other users may read ${directory}: run chmod go= on it, or start the server`)]
  return [
    bad(
      `other users may read ${directory}, and it belongs to another user: run chmod go= on it as that user`,
    ),
  ]
}

/** Says nothing about a directory without added types. */
async function typeFindings(
  directory: string,
  types: readonly AddedType[],
): Promise<readonly Finding[]> {
  try {
    const record = await readDirectoryRecord(directory)
    if (record === undefined || record.types.length === 0) return []
    numberedTypes(record.types, types, directory)
    return [good(`the options name the added types of ${directory}`)]
  } catch (error) {
    return error instanceof AddedTypesError ? [bad(messageOf(error))] : []
  }
}

/** Says what the last server has found; nothing is read but its marks. */
async function damageFindings(directory: string): Promise<readonly Finding[]> {
  const { broken, damaged } = await shardTroubles(directory)
  const mend = 'run postbote verify and postbote repair (docs/run/trouble.md)'
  const aside = new Set(broken.map(({ shard }) => shard))
  return [
    ...broken.map((each) => bad(`shard ${each.shard} is set aside: ${damageText(each)}: ${mend}`)),
    ...damaged
      .filter(({ shard }) => !aside.has(shard))
      .map((each) => warn(`shard ${each.shard} is damaged: ${damageText(each)}: ${mend}`)),
  ]
}

/** A start that loses a part of a log leaves a copy of it, and nothing else that lasts. */
async function copyFindings(directory: string): Promise<readonly Finding[]> {
  const record = await readDirectoryRecord(directory).catch(() => undefined)
  const copies = await damagedFiles(directory, record?.shards ?? 0, levelEngine.files)
  const [first] = copies
  if (first === undefined) return []
  const more = copies.length === 1 ? '' : `, and ${copies.length - 1} more of them`
  return [
    warn(
      `a damaged file was copied to ${first}${more}: updates may be lost; see the log of the start, and move the copies away (docs/run/trouble.md)`,
    ),
  ]
}

async function keyFindings(
  directory: string,
  keyFile: string | undefined,
): Promise<readonly Finding[]> {
  try {
    await readAdminKey(directory, keyFile)
  } catch (error) {
    const isNew =
      keyFile === undefined && isMissing(error instanceof Error ? error.cause : undefined)
    return isNew ? [] : [bad(messageOf(error))]
  }
  const path = keyFile ?? `${directory}/admin.key`
  return [
    isOpenToAll(path)
      ? warn(`every user of this machine can read ${path}: run chmod o= on it`)
      : good(`the admin key in ${path} can be read`),
  ]
}
