import assert from 'node:assert/strict'
import { test } from 'node:test'
import { databaseProblems } from '../../../../src/nodes/commands/database-problems.ts'
import type { ClusterRow } from '../../../../src/nodes/postgres/cluster-row.ts'

/** Returns the problems if these rows are found at `--database db0 --database db1 ...`. */
function problemsOf(...rows: readonly (Partial<ClusterRow> | undefined)[]): readonly string[] {
  return databaseProblems(
    rows.map((row, place) => ({
      database: { shown: `db${place}` },
      row:
        row === undefined
          ? undefined
          : { id: 'c', format: 1, shards: 8, databases: 2, number: 0, types: [], ...row },
    })),
  )
}

test('the databases of one cluster in their order are right, whichever of them respond', () => {
  assert.deepEqual(problemsOf({}, { number: 1 }), [])
  assert.deepEqual(problemsOf(undefined, { number: 1 }), [])
  assert.deepEqual(problemsOf(undefined, undefined), [])
  assert.deepEqual(problemsOf({ databases: 1 }), [])
})

test('another order, number, cluster or number of shards, and a database that is named twice, are refused with the reason', () => {
  assert.deepEqual(problemsOf({ number: 1 }, { number: 0 }), [
    '--database: db0 is the 2nd database of the cluster, and is named as the 1st: name them in the order of postbote database init',
    '--database: db1 is the 1st database of the cluster, and is named as the 2nd: name them in the order of postbote database init',
  ])
  assert.deepEqual(problemsOf(undefined, { number: 0 }).length, 1)
  assert.deepEqual(problemsOf({}), [
    '--database: expected all databases of the cluster of db0, which are 2, got 1',
  ])
  assert.deepEqual(problemsOf({}, { number: 1 }, undefined), [
    '--database: expected all databases of the cluster of db0, which are 2, got 3',
  ])
  assert.deepEqual(problemsOf({}, { number: 1, id: 'd' }), [
    '--database: db1 belongs to the cluster d, and db0 to the cluster c',
  ])
  assert.deepEqual(problemsOf({}, { number: 1, shards: 16 }), [
    '--database: db1 has 16 shards, and db0 8',
  ])
  assert.deepEqual(problemsOf({}, {}), ['--database: db0 and db1 are one database'])
})
