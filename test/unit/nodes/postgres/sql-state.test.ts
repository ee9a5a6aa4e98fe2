import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DatabaseError } from 'pg'
import { isRefusal, sqlState } from '../../../../src/nodes/postgres/sql-state.ts'

function databaseError(code: string | undefined): DatabaseError {
  const error = new DatabaseError('of a test', 0, 'error')
  error.code = code
  return error
}

test('a statement that the database did not accept is refused: nothing was written', () => {
  // An existing key, a lock that was not to be had, a full disk, a standby, a missing table, a canceled statement.
  for (const code of ['23505', '55P03', '53100', '25006', '42P01', '57014']) {
    assert.equal(isRefusal(databaseError(code)), true, code)
  }
})

test('a server that ends, loses its disk or fails internally leaves the outcome unknown', () => {
  for (const code of ['57P01', '57P02', '57P03', '58030', '08006', '08P01', 'F0000', 'XX000']) {
    assert.equal(isRefusal(databaseError(code)), false, code)
  }
})

test('an error of the connection, and one without a code, leave the outcome unknown', () => {
  const reset = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })
  for (const error of [reset, new Error('Query read timeout'), undefined, databaseError(undefined)])
    assert.equal(isRefusal(error), false)
  // Node's errors have codes, too. They are no states of SQL.
  assert.equal(sqlState(Object.assign(new Error('odd'), { code: '23505' })), undefined)
  assert.equal(sqlState(databaseError('23505')), '23505')
})
