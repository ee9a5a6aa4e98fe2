import { relative } from 'node:path'
import type { FilesDamage } from '../../leveldb-files/files-part.ts'
import { describeKey } from '../../shard/shard-records.ts'

/**
 * Describes damage in one line for people: the file as a path relative to `directory`, the offset, what was found,
 * and what may be lost.
 */
export function describeDamage(damage: FilesDamage, directory: string): string {
  const { file, offset, what } = damage
  return `${relative(directory, file)}, byte ${offset}: ${what}${lossOf(damage)}`
}

function lossOf({ isLog, mayLose, key, after, before }: FilesDamage): string {
  if (key !== undefined) return `: ${describeKey(key)}`
  if (!mayLose) return ''
  if (after === undefined && before === undefined) return ''
  const verb = isLog ? 'was written' : 'lies'
  if (after === undefined) return `; what ${verb} before ${describe(before)} may be lost`
  if (before === undefined) return `; what ${verb} after ${describe(after)} may be lost`
  return `; what ${verb} between ${describe(after)} and ${describe(before)} may be lost`
}

function describe(key: Buffer | undefined): string {
  return key === undefined ? '' : describeKey(key)
}
