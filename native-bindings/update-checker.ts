/** Typed wrapper of the native addon `check_updates`. `check_updates.c` documents its functions. */
import { loadAddon } from './load-addon.ts'

export interface UpdateCheckerOptions {
  /** For each update type, its name and the paths of the ids in its payload, separated by spaces. */
  readonly types: readonly string[]
  readonly nestingMax: number
  /** Ids of more bytes are left to JavaScript. */
  readonly idBytesMax: number
}

/** Checks the updates of the first `count` rows, whose ranges are set, and fills these rows. */
export type UpdateChecker = (bytes: Buffer, rows: Int32Array, count: number) => void

/** Length of a row. */
export const updateRowLength = 9

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
