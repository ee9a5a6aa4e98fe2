/**
 * The options with which a reload starts the new workers: the options that were read anew, except those that belong to
 * the primary or must always be the same in all workers.
 */
import { isDeepStrictEqual } from 'node:util'
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
  'databases',
  'nodeName',
  'requireReplication',
  'clusterListen',
  'clusterAdvertise',
  'clusterKeyFile',
  'clusterCert',
  'clusterCertKey',
  'clusterCa',
  'logFile',
] as const satisfies readonly (keyof Config)[]

export interface ReloadedConfig {
  readonly config: Config
  /** The names of options that have changed and take effect only after a restart. */
  readonly needRestart: readonly string[]
}

export function reloadedConfig(running: Config, read: Config): ReloadedConfig {
  const kept = Object.fromEntries(fixedFields.map((field) => [field, running[field]]))
  const changed = fixedFields.filter((field) => !isDeepStrictEqual(read[field], running[field]))
  return {
    config: { ...read, ...kept },
    needRestart: changed.map((field) => optionTable[field].name),
  }
}
