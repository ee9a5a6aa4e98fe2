/**
 * What the doctor looks for in a database: a statement that selects what is wrong or worth saying, and the sentence for each
 * row of it. To add a look, add a row to server-looks.ts or cluster-looks.ts.
 */
import assert from 'node:assert/strict'
import type { Finding } from '../../kit/finding.ts'
import type { PgConnection } from './pg-connection.ts'

/** The columns of which a sentence speaks: a look selects those that its sentence uses. */
export interface LookRow {
  readonly found: string | number
  readonly other: string
  readonly names: readonly (string | number)[]
  readonly others: readonly string[]
}

export interface Look {
  readonly sql: string
  readonly level: Finding['level']
  readonly sentence: (row: LookRow) => string
}

/** Looks of one moment. */
export interface Looks {
  /** A WITH that names what their SQL reads, of the values too. */
  readonly given?: string
  readonly looks: readonly Look[]
}

/** A function of PostgreSQL takes this many arguments (FUNC_MAX_ARGS). */
const pgArgumentsMax = 100

/** Looks for all of it in one statement, so at one moment. Returns the findings in the order of the looks. */
export async function findAll(
  connection: PgConnection,
  { given = '', looks }: Looks,
  values: readonly unknown[] = [],
): Promise<readonly Finding[]> {
  assert(looks.length <= pgArgumentsMax, 'PostgreSQL takes the looks of a moment in one call')
  const parts = looks.map(
    ({ sql }) => `(SELECT coalesce(json_agg(found_row), '[]') FROM (${sql}) found_row)`,
  )
  const text = `${given} SELECT json_build_array(${parts.join(', ')}) AS found`
  const [row] = await connection.run<{ readonly found: readonly (readonly LookRow[])[] }>(
    { text },
    values,
  )
  return looks.flatMap(({ level, sentence }, nth) =>
    (row?.found[nth] ?? []).map((found) => ({ level, text: sentence(found) })),
  )
}
