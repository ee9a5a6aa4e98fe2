/**
 * The data directory of a server, with mode 0700:
 *
 *     <dir>/postbote.json    what was fixed at the first start (directory-record.ts)
 *     <dir>/admin.key        the admin key of the private API, mode 0600, unless --admin-key-file names another file
 *     <dir>/shards/<n>       one LevelDB for each shard, n from 0
 *     <dir>/events           the last events for the operator (process/event-file.ts)
 *     <dir>/last-polls       when each bot polled last (features/fleet/queue-times.ts)
 *     <dir>/reported-*       troubles of bots that were reported and are not over (features/fleet/queue-times.ts)
 *     <dir>/relay-refused    updates that relays have skipped (features/relay/refused-updates.ts)
 *     <dir>/run              what the processes share while they run: Unix sockets, the shared memory
 *     <dir>/lock, .lock      held by the running server (process/primary/directory-lock.ts)
 *
 * The number of shards determines the shard of every bot, so a different number is refused and never guessed. A
 * directory that has shards but no postbote.json is refused, and so is a directory whose shards contradict it. A
 * shard is created only once: if a part of it is missing later, that is damage, which is detected when the shard is
 * opened (new-shard.ts).
 */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { chmod, mkdtemp, readFile, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { type AddedType, numberedTypes, storedType } from '../kit/added-type.ts'
import { shardsMax, socketPathBytesMax } from '../kit/limits.ts'
import {
  type DirectoryRecord,
  directoryRecordName,
  isShardCount,
  readDirectoryRecord,
  writeDirectoryRecord,
} from './records/directory-record.ts'
import type { StoreFiles } from '../store/store-files.ts'
import { makePrivateDirectory, writeFileAtomically } from '../store/write-file.ts'
import { openToAllWarnings } from '../store/open-to-all.ts'
import { exists, numbersIn } from '../store/read-if-there.ts'

/** A directory that an import fills. It is there until the shards have their final place. */
export const unfinishedImportName = 'unfinished-import'

export interface DataDirectoryOptions {
  readonly path: string
  /** The value of --shards; undefined accepts the recorded number. */
  readonly shards: number | undefined
  /** The number for a new directory if --shards is not given. */
  readonly shardsDefault: number
  /** Undefined if no files of this machine hold the shards: their directories are then neither made nor counted. */
  readonly files: StoreFiles | undefined
  /** The added types that the options name; undefined if databases have the shards, whose rows have the types. */
  readonly types?: readonly AddedType[] | undefined
  /** Parent of the run directory if the path is too long for sockets; os.tmpdir() by default. */
  readonly temporary?: string
}

export interface DataDirectory {
  /** An absolute path. */
  readonly path: string
  readonly shards: number
  /** The added types, in the order of their numbers. */
  readonly types: readonly AddedType[]
  /** A directory with mode 0700 in which a socket name of up to 24 bytes results in a path under 100 bytes. */
  readonly runPath: string
  /** For the log: modes that were too permissive, and what was done about them. */
  readonly warnings: readonly string[]
}

export function shardPath(directory: string, shard: number): string {
  assert(shard >= 0 && shard < shardsMax, 'a shard has a number below 256')
  return join(directory, 'shards', `${shard}`)
}

/**
 * Creates what is missing and checks the rest. The caller must hold the lock.
 *
 * @throws Error if the options contradict the record; nothing was changed then.
 */
export async function prepareDataDirectory(options: DataDirectoryOptions): Promise<DataDirectory> {
  const path = resolve(options.path)
  await makePrivateDirectory(path)
  const warnings: string[] = []
  await keepPrivate(path, 0o700, warnings)
  const recorded = await readDirectoryRecord(path)
  const types = numberedTypes(recorded?.types ?? [], options.types ?? [], path)
  const shards = await fixShards(path, options, recorded, types.map(storedType))
  const runPath = await prepareRunDirectory(path, options.temporary ?? tmpdir())
  return { path, shards, types, runPath, warnings }
}

export interface AdminKey {
  readonly key: string
  readonly warnings: readonly string[]
}

/**
 * Returns the admin key. At the first start, creates it and stores it in the data directory.
 *
 * @param keyFile - --admin-key-file
 */
export async function ensureAdminKey(
  directory: string,
  keyFile: string | undefined,
  random: (bytes: number) => Buffer = randomBytes,
): Promise<AdminKey> {
  const path = adminKeyPath(directory, keyFile)
  if (keyFile === undefined && !(await exists(path))) {
    await writeFileAtomically(path, `${random(32).toString('base64url')}\n`, 0o600)
  }
  const warnings: string[] = []
  // A file named by the operator is not changed: mounted secrets often belong to root and are readable by a group.
  if (keyFile === undefined) await keepPrivate(path, 0o600, warnings)
  const key = await readAdminKey(directory, keyFile)
  if (keyFile !== undefined) warnings.push(...openToAllWarnings(path))
  return { key, warnings }
}

/** An admin key has at least this many characters: 16 random visible ones have 104 bits and cannot be guessed. */
const adminKeyLengthMin = 16

/** Returns the existing admin key, for the command line. */
export async function readAdminKey(directory: string, keyFile?: string): Promise<string> {
  const path = adminKeyPath(directory, keyFile)
  let key: string
  try {
    key = (await readFile(path, 'utf8')).trim()
  } catch (error) {
    const { code }: { code?: unknown } = Object(error)
    const reason = typeof code === 'string' ? ` (${code})` : ''
    throw new Error(`cannot read the admin key from ${path}${reason}`, { cause: error })
  }
  // The characters that a header field may contain after "Bearer ".
  if (key.length < adminKeyLengthMin || !/^[\x21-\x7e]+$/.test(key)) {
    throw new Error(
      `expected an admin key of at least ${adminKeyLengthMin} visible ASCII characters in ${path}, got ${key.length}`,
    )
  }
  return key
}

export function adminKeyPath(directory: string, keyFile: string | undefined): string {
  return keyFile ?? join(directory, 'admin.key')
}

/** @param types - the added types that the directory will have, as they are stored */
async function fixShards(
  path: string,
  options: DataDirectoryOptions,
  recorded: DirectoryRecord | undefined,
  types: readonly string[],
): Promise<number> {
  const { files } = options
  const found = await numbersIn(join(path, 'shards'))
  if (found.length === 0 && (await exists(join(path, unfinishedImportName)))) {
    throw new Error(
      `an import into ${path} was interrupted, and its shards are missing: repeat it, or remove the directory`,
    )
  }
  if (recorded === undefined) {
    return makeShards(path, await newRecord(path, options, found, types), files, types)
  }
  const { shards, isMade } = recorded
  if (options.shards !== undefined && options.shards !== shards) {
    throw new Error(
      `${path} was created with ${shards} shards, but --shards is ${options.shards}; ` +
        'the number is fixed when a data directory is created',
    )
  }
  if (files === undefined) return shards
  if (!isMade) return makeShards(path, shards, files, types)
  // The shards that are known to have been opened have an id mark (id-mark.ts).
  assertCount(path, shards, found, await numbersIn(join(path, 'ids')))
  // Written before the first update of a new type can be.
  if (types.length > recorded.types.length) {
    await writeDirectoryRecord(path, { shards, isMade, types })
  }
  return shards
}

async function newRecord(
  path: string,
  options: DataDirectoryOptions,
  found: readonly number[],
  types: readonly string[],
): Promise<number> {
  if (found.length > 0) {
    throw new Error(
      `${join(path, directoryRecordName)} is missing, but there are shards beside it; restore the file, ` +
        'because its number of shards decides which shard a bot is in',
    )
  }
  const shards = options.shards ?? options.shardsDefault
  if (!isShardCount(shards)) {
    throw new Error(
      `expected --shards to be a power of two up to ${shardsMax}, got ${String(shards)}`,
    )
  }
  await writeDirectoryRecord(path, { shards, isMade: false, types })
  return shards
}

/** Runs at the first start, or after a first start that was interrupted. */
async function makeShards(
  path: string,
  shards: number,
  files: StoreFiles | undefined,
  types: readonly string[],
): Promise<number> {
  for (let shard = 0; shard < shards; shard++) await files?.makeNew(shardPath(path, shard))
  await writeDirectoryRecord(path, { shards, isMade: true, types })
  return shards
}

/**
 * A missing shard is damage of that shard. If there are shards above the recorded number, or only the first half or
 * less, the number or the directory is wrong.
 */
function assertCount(
  path: string,
  shards: number,
  found: readonly number[],
  marked: readonly number[],
): void {
  const record = join(path, directoryRecordName)
  const last = found.at(-1)
  if (last === undefined) {
    throw new Error(
      `${join(path, 'shards')} is missing or empty, but ${record} says that there are ${shards} shards; ` +
        'restore it, or mount its disk',
    )
  }
  // The prefix may be all the shards that ever existed, unless a shard with a higher number has an id mark.
  const wasMore = marked.some((shard) => shard > last && shard < shards)
  const isPrefix = found.length <= shards / 2 && last === found.length - 1 && !wasMore
  if (last < shards && !isPrefix) return
  throw new Error(
    `${record} says that there are ${shards} shards, but ${join(path, 'shards')} has ${found.length}, ` +
      `and the last one is ${last}; the number decides which shard a bot is in, so restore the one that is wrong`,
  )
}

async function prepareRunDirectory(path: string, temporary: string): Promise<string> {
  const inside = join(path, 'run')
  if (fitsSockets(inside)) {
    await makePrivateDirectory(inside)
    await keepPrivate(inside, 0o700, [])
    return inside
  }
  const outside = await mkdtemp(join(temporary, 'postbote-'))
  if (fitsSockets(outside)) return outside
  throw new Error(
    `Unix socket paths may have at most ${socketPathBytesMax} bytes, and those in ${inside} and in ${outside} are longer; ` +
      'use a shorter data directory or set TMPDIR',
  )
}

/** The longest name of a socket in the run directory, which the check of the directory's path adds. */
const socketNameBytesMax = 24

function fitsSockets(path: string): boolean {
  return Buffer.byteLength(path) + 1 + socketNameBytesMax < socketPathBytesMax
}

/** Narrows a mode that lets other users in, if this user owns the path. */
async function keepPrivate(path: string, mode: number, warnings: string[]): Promise<void> {
  const found = await stat(path)
  if ((found.mode & 0o077) === 0) return
  const was = (found.mode & 0o777).toString(8).padStart(4, '0')
  if (found.uid === process.getuid?.()) {
    await chmod(path, mode)
    warnings.push(
      `${path} had mode ${was}, which gives other users access; its mode is now 0${mode.toString(8)}`,
    )
  } else {
    warnings.push(
      `${path} belongs to another user and has mode ${was}, which gives other users access: run chmod go= on it`,
    )
  }
}

/** Lists the copies of damaged files, as paths relative to the data directory. An operator moves them away. */
export async function damagedFiles(
  dataDir: string,
  shards: number,
  files: Pick<StoreFiles, 'damagedCopies'> | undefined,
): Promise<readonly string[]> {
  const found: string[] = []
  for (let shard = 0; shard < shards; shard++) {
    const copies = (await files?.damagedCopies(shardPath(dataDir, shard))) ?? []
    for (const copy of copies) found.push(relative(dataDir, copy))
  }
  return found
}
