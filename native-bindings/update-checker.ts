/** Typed wrapper of the native addon `check_updates`. `check_updates.c` documents its functions. */
import { loadAddon } from './load-addon.ts'

export interface UpdateCheckerOptions {
  /** For each update type, the letter of its keys, its name and the paths of the ids in its payload, separated by spaces. */
  readonly types: readonly string[]
  readonly nestingMax: number
  /** Ids of more bytes are left to JavaScript. */
  readonly idBytesMax: number
}

/** Checks the updates of the first `count` rows and fills these rows. Returns how many are left to JavaScript. */
export type UpdateChecker = (bytes: Buffer, rows: Int32Array, count: number) => number

export function updateChecker({
  types,
  nestingMax,
  idBytesMax,
}: UpdateCheckerOptions): UpdateChecker {
  const addon = loadAddon<Addon>('check_updates')
  return addon.updateChecker(types.join('\n'), nestingMax, idBytesMax)
}

interface Addon {
  updateChecker(types: string, nestingMax: number, idBytesMax: number): UpdateChecker
}
