import { examineDatabase } from '../../store/postgres/examine-database.ts'
import { bad } from '../../store/postgres/finding.ts'
import type { PgUrl } from '../../store/postgres/pg-url.ts'
import { databaseProblems } from '../database-problems.ts'
import { headingOf } from '../with-databases.ts'
import type { Examined } from './examined.ts'

/** Examines each database, and whether they belong together. */
export async function examineDatabases(databases: readonly PgUrl[]): Promise<readonly Examined[]> {
  const examined = await Promise.all(databases.map((database) => examineDatabase(database)))
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
