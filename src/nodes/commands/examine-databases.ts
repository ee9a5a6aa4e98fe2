import { givenTypes } from '../../kit/added-type.ts'
import { messageOf } from '../../kit/errors.ts'
import type { ClusterRow } from '../postgres/cluster-row.ts'
import { typesOfCluster } from './cluster-types.ts'
import { examineDatabase } from '../postgres/examine-database.ts'
import { bad } from '../../kit/finding.ts'
import { shownUrls } from '../../api/pg-url.ts'
import type { Config } from '../../config/config.ts'
import { databaseProblems } from './database-problems.ts'
import { headingOf } from './with-databases.ts'
import { availableParallelism } from 'node:os'
import { defaultWorkers } from '../../process/shard-map.ts'
import type { Examined } from '../../cli/doctor/examine-machine.ts'

/** Examines each database, and whether they belong together. */
export async function examineDatabases(config: Config): Promise<readonly Examined[]> {
  const { databases } = config
  const examined = await Promise.all(
    databases.map((database) =>
      examineDatabase(
        database,
        (shards) => config.workers ?? defaultWorkers(availableParallelism(), shards),
      ),
    ),
  )
  const named = databases.map((database, number) => ({ database, row: examined[number]?.cluster }))
  const rows = named.map(({ row }) => row)
  const problems = [...databaseProblems(named), ...typeProblems(config, rows)].map((problem) =>
    bad(problem),
  )
  return [
    ...examined.map(({ findings }, number) => ({
      heading: headingOf(databases, number),
      findings,
    })),
    { heading: [], findings: problems },
  ]
}

/** Returns what is wrong if the options do not name the added types of the databases. */
function typeProblems(
  config: Config,
  rows: readonly (ClusterRow | undefined)[],
): readonly string[] {
  try {
    typesOfCluster(rows, givenTypes(config), shownUrls(config.databases))
    return []
  } catch (error) {
    return [messageOf(error)]
  }
}
