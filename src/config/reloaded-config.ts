/**
 * The options with which a reload starts the new workers: those that are read anew, but for the ones that are the
 * primary's, or must be the same for all workers at every moment.
 */
import { type Config } from './config.ts'
import { optionTable } from './config-options.ts'

const fixedFields = [
  'dir',
  'workers',
  'shards',
  'httpPort',
  'httpIpAddress',
  'adminPort',
  'adminIpAddress',
  'adminKeyFile',
] as const satisfies readonly (keyof Config)[]

export interface ReloadedConfig {
  readonly config: Config
  /** Names of options that have changed, and take a restart to be in effect. */
  readonly needRestart: readonly string[]
}

export function reloadedConfig(running: Config, read: Config): ReloadedConfig {
  const kept = Object.fromEntries(fixedFields.map((field) => [field, running[field]]))
  const changed = fixedFields.filter((field) => read[field] !== running[field])
  return {
    config: { ...read, ...kept },
    needRestart: changed.map((field) => optionTable[field].name),
  }
}
