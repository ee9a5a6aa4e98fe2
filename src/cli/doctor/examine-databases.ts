import { examineDatabase } from '../../store/postgres/examine-database.ts'
import { bad } from '../../store/postgres/finding.ts'
import type { Config } from '../../config/config.ts'
import { databaseProblems } from '../cluster/database-problems.ts'
import { headingOf } from '../cluster/with-databases.ts'
import { workersOf } from '../serve/workers-of.ts'
import type { Examined } from './examined.ts'

/** Examines each database, and whether they belong together. */
export async function examineDatabases(config: Config): Promise<readonly Examined[]> {
  const { databases } = config
  const examined = await Promise.all(
    databases.map((database) =>
      examineDatabase(database, { workersOf: (shards) => workersOf(config, shards) }),
    ),
  )
  const named = databases.map((database, number) => ({ database, row: examined[number]?.cluster }))
  const problems = databaseProblems(named).map((problem) => bad(problem))
  return [
    ...examined.map(({ findings }, number) => ({
      heading: headingOf(databases, number),
      findings,
    })),
    { heading: [], findings: problems },
  ]
}
