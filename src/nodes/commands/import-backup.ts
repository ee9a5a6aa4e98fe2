/** Has a backup brought into the empty databases of a new cluster. */
import { shownUrls } from '../../api/pg-url.ts'
import { ConfigError } from '../../config/config.ts'
import type { DatabaseImport } from '../../features/backup/import-command.ts'
import { assertEmpty, fillDatabases, useDatabases } from './cluster-databases.ts'

/** Runs `work`, which fills the databases, while no server may use them. */
export function importBackup<Result>({
  config: { databases, shards },
  types: given,
  work,
}: DatabaseImport<Result>): Promise<Result> {
  return useDatabases(databases, async (cluster) => {
    const shown = shownUrls(databases)
    if (shards !== undefined && shards !== cluster.shards) {
      throw new ConfigError([`--shards ${shards}: expected ${cluster.shards}, which ${shown} has`])
    }
    const { open, rows } = cluster
    const types = [...new Set([...(rows[0]?.types ?? []), ...given])]
    await assertEmpty(cluster)
    const target = { shown, shards: cluster.shards, hasMarks: false, open, bound: nothing }
    return fillDatabases(cluster, types, () => work(target, types))
  })
}

async function nothing(): Promise<void> {
  // A database loses no ids, and needs no bound of them.
}
