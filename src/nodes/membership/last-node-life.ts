/**
 * What a data directory says of the life of its last server in a database, so that the next one need not wait for the end of
 * that life: its boot, and the lock that it held. Whoever holds the same lock has outlived it. In a copy of the directory,
 * and on another machine, the lock is another one.
 */

export interface LastNodeLife {
  readonly boot: string
  /** Whether that life is certainly over. If the directory is a copy, the server of the original may be alive. */
  readonly hasEnded: boolean
}

/**
 * Returns the record of a life.
 *
 * @param lock - the identity of the lock that its server holds; undefined if there is none to compare
 */
export function lifeRecord(boot: string, lock: string | undefined): string {
  return `${lock === undefined ? boot : `${boot} ${lock}`}\n`
}

/**
 * Reads the record of a life. One without a lock, as earlier versions wrote it, proves nothing.
 *
 * @param lock - the identity of the lock that this server holds
 */
export function lastLifeOf(record: string, lock: string | undefined): LastNodeLife | undefined {
  const [boot = '', heldLock] = record.trim().split(' ')
  return boot === '' ? undefined : { boot, hasEnded: heldLock !== undefined && heldLock === lock }
}
