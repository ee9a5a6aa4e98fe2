/** What became of a statement that did not succeed. */
import { DatabaseError } from 'pg'

/** Returns the code (SQLSTATE) with which the database refused a statement, or undefined for any other failure. */
export function sqlState(error: unknown): string | undefined {
  return error instanceof DatabaseError ? error.code : undefined
}

export const uniqueViolation = '23505'
export const lockNotAvailable = '55P03'
export const insufficientPrivilege = '42501'

/**
 * Returns whether a statement and the tables do not fit together: a table, a column or an index is missing or otherwise, or
 * this role may not use it. Trying again does not help.
 */
export function isWrongSchema(error: unknown): boolean {
  return sqlState(error)?.startsWith('42') === true
}

/**
 * Returns whether the database refused the statement, so that nothing was written. A connection that breaks, and a server
 * that ends (57P), loses its disk (58) or fails internally (XX), leave that unknown: the commit may have been on its way.
 */
export function isRefusal(error: unknown): boolean {
  const code = sqlState(error)
  return code !== undefined && !/^(?:08|57P|58|F0|XX)/.test(code)
}
