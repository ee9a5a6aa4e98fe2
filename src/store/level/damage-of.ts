/**
 * Recognizes damage in errors of LevelDB and of the file system, which have no class of their own. All other failures to
 * open a shard (a locked database, a full disk, no permission, no descriptors) affect the complete server and are not
 * damage: they may pass, and the operator must see them immediately.
 */
import { basename, join } from 'node:path'
import { ShardDamaged } from '../shard-damaged.ts'

/**
 * Recognizes damage in an error.
 *
 * @param error - the error with which opening, reading or checking a shard failed.
 * @param directory - the shard's directory.
 * @returns the damage that the error or one of its causes describes; undefined if it is a failure of another kind.
 */
export function damageOf(error: unknown, directory: string): ShardDamaged | undefined {
  for (let each = error; each instanceof Error; each = each.cause) {
    if (each instanceof ShardDamaged) return each
    const reason = reasonOf(each)
    if (reason !== undefined) {
      return new ShardDamaged({ file: fileIn(each, directory), reason }, { cause: error })
    }
  }
  return undefined
}

/** Texts of strerror, which are all that LevelDB keeps of a system error. */
const damagedFileTexts =
  /no such file or directory|input\/output error|structure needs cleaning|not a directory|is a directory/i
const damagedFileCodes = new Set(['ENOENT', 'EIO', 'EUCLEAN', 'ENOTDIR', 'EISDIR'])
/** A write that fails damages nothing that was there. */
const writingCalls = new Set([
  'write',
  'fsync',
  'fdatasync',
  'ftruncate',
  'rename',
  'unlink',
  'mkdir',
])

function reasonOf(error: Error): string | undefined {
  const { message } = error
  // LevelDB says "Invalid argument" for a database that is not there, or that another program has written.
  if (/^(?:Corruption|NotFound|Invalid argument): /.test(message)) return message
  if (message.startsWith('IO error: ')) {
    return damagedFileTexts.test(message) ? message : undefined
  }
  if ('syscall' in error && writingCalls.has(String(error.syscall))) return undefined
  const code = 'code' in error ? error.code : undefined
  return typeof code === 'string' && damagedFileCodes.has(code) ? message : undefined
}

/** LevelDB names the file in its message, the file system in a field. */
function fileIn(error: Error, directory: string): string {
  if ('path' in error && typeof error.path === 'string') return error.path
  const name = /\/(\d+\.(?:ldb|sst|log)|MANIFEST-\d+|CURRENT|LOG|LOCK)\b/.exec(error.message)?.[1]
  if (name !== undefined) return join(directory, basename(name))
  return /CURRENT/.test(error.message) ? join(directory, 'CURRENT') : directory
}

/** What strerror says, in the words of LevelDB and of Node, which keep nothing else of it in common. */
const texts = /no space left on device|disk quota exceeded/i

/** Returns whether an error, or one of its causes, says that the disk is full or that a quota is used up. */
export function isOutOfRoom(error: unknown): boolean {
  for (let each = error; each instanceof Error; each = each.cause) {
    if (texts.test(each.message)) return true
  }
  return false
}
