/**
 * The SQL of one shard. Every shard has tables of its own (create-schema.ts): in tables that shards share, the plan of a
 * statement depends on statistics, and a bad one reads the whole shard for each range.
 */
import type { TableKind } from './pg-group.ts'

/** Shards share connections for reading, so the names of what they read with contain the shard. */
export interface NamedStatement {
  /** `pg` prepares a statement with a name once for each connection. */
  readonly name: string
  readonly text: string
}

export const tableKinds = ['u', 's', 'r'] as const

/** Returns the name of a table of a shard. */
export function tableName(kind: TableKind, shard: number): string {
  return `${kind}_${shard}`
}

/**
 * Writes one group, if the shard still has the epoch `$2`. FOR SHARE makes a claim wait for the end of this statement. Its
 * result is one number: 0 says that the shard has another epoch, and that nothing was written.
 *
 * @param replaces - whether updates that exist are replaced. Otherwise they are errors, which is cheaper: an update is
 *   inserted once.
 */
export function groupStatement(shard: number, replaces: boolean): NamedStatement {
  const [u, s, r] = tableKinds.map((kind) => tableName(kind, shard))
  const replace = 'ON CONFLICT (key) DO UPDATE SET value = excluded.value'
  return {
    name: replaces ? 'group-replacing' : 'group',
    text: `WITH o AS MATERIALIZED (SELECT 1 FROM shard WHERE shard = $1 AND epoch = $2 FOR SHARE),
d0 AS (DELETE FROM ${u} t USING unnest($9::bytea[], $10::bytea[]) d(lo, hi), o WHERE t.key >= d.lo AND t.key < d.hi),
d1 AS (DELETE FROM ${s} t USING unnest($11::bytea[]) d(k), o WHERE t.key = d.k),
d2 AS (DELETE FROM ${r} t USING unnest($12::bytea[]) d(k), o WHERE t.key = d.k),
i0 AS (INSERT INTO ${u} ${pairs(3)} ${replaces ? replace : ''}),
i1 AS (INSERT INTO ${s} ${pairs(5)} ${replace}),
i2 AS (INSERT INTO ${r} ${pairs(7)} ${replace})
SELECT count(*)::int AS owned FROM o`,
  }
}

/** Reads the values of the keys `$1` (u), `$2` (s) and `$3` (r); absent keys have no row. */
export function getManyStatement(shard: number): NamedStatement {
  const parts = tableKinds.map(
    (kind, nth) =>
      `SELECT t.key, t.value FROM unnest($${nth + 1}::bytea[]) k(key) JOIN ${tableName(kind, shard)} t USING (key)`,
  )
  return { name: `get-many-${shard}`, text: parts.join('\nUNION ALL\n') }
}

/** Clears deleted rows of the tables that have updates. */
export function vacuumStatement(shard: number): string {
  return `VACUUM ${tableName('u', shard)}, ${tableName('r', shard)}`
}

function pairs(at: number): string {
  return `SELECT t.k, t.v FROM unnest($${at}::bytea[], $${at + 1}::bytea[]) t(k, v), o`
}

export interface RangeShape {
  /** The only table that can hold keys of the range, or undefined for all. */
  readonly table: TableKind | undefined
  readonly isReverse: boolean
  readonly hasBytesMax: boolean
  readonly keysOnly: boolean
}

/** Reads the entries from `$1` up to, but not including, `$2`: at most `$3`, and values of up to `$4` bytes and one more. */
export function rangeStatement(shard: number, shape: RangeShape): NamedStatement {
  const { table, isReverse, hasBytesMax, keysOnly } = shape
  const direction = isReverse ? 'DESC' : 'ASC'
  const columns = keysOnly ? 'key' : 'key, value'
  const of = (kind: TableKind): string =>
    `SELECT ${columns} FROM ${tableName(kind, shard)} WHERE key >= $1 AND key < $2`
  const from = (table === undefined ? tableKinds : [table]).map(of).join(' UNION ALL ')
  const found = `SELECT * FROM (${from}) t ORDER BY key ${direction} LIMIT $3`
  const before = `sum(octet_length(value)) OVER (ORDER BY key ${direction} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)`
  const cut = `SELECT key, value FROM (SELECT *, ${before} AS before FROM (${found}) f) c WHERE before IS NULL OR before < $4 ORDER BY key ${direction}`
  const name = [
    'range',
    table ?? 'all',
    direction,
    keysOnly ? 'keys' : hasBytesMax ? 'cut' : 'whole',
    shard,
  ]
  return { name: name.join('-'), text: hasBytesMax && !keysOnly ? cut : found }
}

/**
 * Makes `$2`, in its life `$3`, the owner of a shard whose epoch is `$4`, unless its owner is alive. No row: it is alive,
 * another node was faster, or the life `$3` is over. A worker that starts while its node is evicted would otherwise claim
 * for that life, and serve the shard under the lease of the next one.
 */
export const claimStatement = `UPDATE shard SET epoch = epoch + 1, node = $2, boot = $3
WHERE shard = $1 AND epoch = $4 AND (boot = $3 OR NOT EXISTS (SELECT FROM node n WHERE n.boot = shard.boot))
AND EXISTS (SELECT FROM node n WHERE n.boot = $3)
RETURNING epoch`

/** Reads the owner and the epoch of shard `$1`. */
export const ownerStatement = 'SELECT epoch, node, boot FROM shard WHERE shard = $1'

/** Ends the connections named `$1`, all but this one. */
export const endOwnerStatement = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE application_name = $1 AND pid <> pg_backend_pid()`

/**
 * Arrays of bytes as PostgreSQL's binary format of `bytea[]`. A Buffer is sent in binary by `pg`; a list of Buffers would
 * be sent as hexadecimal text, at two to three times the CPU.
 *
 *   dimensions(4) hasNulls(4) elementType(4) [length(4) lowerBound(4) (bytes(4) element)...]
 */
const byteaOid = 17
const emptyArray = headerOf([0, 0, byteaOid])

/** Returns the elements as one binary parameter of type `bytea[]`. */
export function byteaArray(elements: readonly Uint8Array[]): Buffer {
  if (elements.length === 0) return emptyArray
  const header = headerOf([1, 0, byteaOid, elements.length, 1])
  let bytes = header.length
  for (const element of elements) bytes += 4 + element.length
  const array = Buffer.allocUnsafe(bytes)
  array.set(header)
  let at = header.length
  for (const element of elements) {
    at = array.writeInt32BE(element.length, at)
    array.set(element, at)
    at += element.length
  }
  return array
}

function headerOf(numbers: readonly number[]): Buffer {
  const header = Buffer.alloc(numbers.length * 4)
  for (const [nth, number] of numbers.entries()) header.writeInt32BE(number, nth * 4)
  return header
}
