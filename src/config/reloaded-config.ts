/**
 * The options with which a reload starts the new workers: the options that were read anew, except those that belong to
 * the primary or must always be the same in all workers.
 */
import { isDeepStrictEqual } from 'node:util'
import type { Config } from './config.ts'
import { type OptionRow, optionTable } from './config-options.ts'

export interface ReloadedConfig {
  readonly config: Config
  /** The names of options that have changed and take effect only after a restart. */
  readonly needRestart: readonly string[]
}

export function reloadedConfig(running: Config, read: Config): ReloadedConfig {
  const kept: Record<string, unknown> = {}
  const needRestart: string[] = []
  const rows: Readonly<Record<string, OptionRow>> = optionTable
  const [now, then] = [new Map(Object.entries(running)), new Map(Object.entries(read))]
  for (const [field, { name, needsRestart }] of Object.entries(rows)) {
    if (needsRestart === undefined) continue
    kept[field] = now.get(field)
    if (!isDeepStrictEqual(then.get(field), now.get(field))) needRestart.push(name)
  }
  return { config: { ...read, ...kept }, needRestart }
}
