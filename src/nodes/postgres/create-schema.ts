/**
 * The tables of a database, and the row that says which cluster they belong to.
 *
 *   cluster   one row: what `postbote database init` fixed
 *   node      a row for each living node
 *   shard     a row for each shard: its owner, and its epoch, which rises with each owner
 *   u_k s_k r_k   the records of shard k, with the keys and values of docs/inside/storage.md: updates; ids and counts; the rest
 *
 * `fillfactor` leaves room on the page for the next version of a row that is overwritten all the time.
 * The values of updates are not compressed, because they are short-lived.
 */
import { randomUUID } from 'node:crypto'
import { type ClusterRow, hasSchema, schemaFormat } from './cluster-row.ts'
import type { PgConnection } from './pg-connection.ts'
import { tableName } from './named-statement.ts'
import { shardsOfDatabase } from '../../store/database-of-shard.ts'
import type { TableKind } from './pg-group.ts'

/**
 * The settings of the tables of a shard, as `pg_class.reloptions` has them. `fillfactor` leaves room on the page for the
 * next version of a row that is overwritten all the time. Updates are deleted soon, in large numbers, so that their table is
 * vacuumed by a number of rows and not by its share of a size that changes all the time.
 */
export const tableSettings: Readonly<Record<TableKind, readonly string[]>> = {
  u: [
    'autovacuum_vacuum_scale_factor=0',
    'autovacuum_vacuum_threshold=20000',
    'autovacuum_vacuum_cost_delay=0',
    'autovacuum_vacuum_insert_threshold=-1',
  ],
  s: ['fillfactor=50'],
  r: [],
}

const sharedTables = `CREATE TABLE cluster (id uuid NOT NULL, format int NOT NULL, shards int NOT NULL, databases int NOT NULL, number int NOT NULL, admin_key text);
CREATE TABLE node (name text PRIMARY KEY, boot text NOT NULL UNIQUE, beat bigint NOT NULL, address text NOT NULL, workers int NOT NULL, state text NOT NULL, clock jsonb) WITH (fillfactor = 50);
CREATE TABLE shard (shard int PRIMARY KEY, epoch bigint NOT NULL, node text NOT NULL, boot text NOT NULL) WITH (fillfactor = 50);`

/** Held until the connection is closed; another connection to the same database does not get it. */
const lockForCluster = {
  text: 'SELECT pg_try_advisory_lock(hashtextextended($1, 0)) AS is_first',
}

/** Returns the rows of a new cluster, one for each of its databases. */
export function newCluster(shards: number, databases: number): readonly ClusterRow[] {
  const id = randomUUID()
  return Array.from({ length: databases }, (_, number) => {
    return { id, format: schemaFormat, shards, databases, number, types: [] }
  })
}

/**
 * Creates the tables of a database, for its shards only, in a transaction that stays open until `commitSchema`: the
 * databases of a cluster get their tables together, or none of them does. Only a connection that is lost between the first
 * commit and the last leaves tables in some of them.
 *
 * @throws DatabaseError if a table exists or the role may not create tables; Error if another database of the cluster is
 *   the same one
 */
export async function createSchema(connection: PgConnection, row: ClusterRow): Promise<void> {
  if (await hasSchema(connection)) {
    throw new Error('the database already has the tables of a cluster')
  }
  const [lock] = await connection.run<{ readonly is_first: boolean }>(lockForCluster, [row.id])
  if (lock?.is_first !== true) throw new Error('it is named twice: expected different databases')
  const own = shardsOfDatabase(row)
  const text = [
    'BEGIN;',
    sharedTables,
    ...own.map(shardTables),
    `INSERT INTO cluster VALUES ('${row.id}', ${row.format}, ${row.shards}, ${row.databases}, ${row.number}, NULL);`,
    ...own.map((shard) => `INSERT INTO shard VALUES (${shard}, 0, '', '');`),
  ].join('\n')
  await connection.runScript(text)
}

export async function commitSchema(connection: PgConnection): Promise<void> {
  await connection.runScript('COMMIT')
}

function shardTables(shard: number): string {
  const [u, s, r] = [tableName('u', shard), tableName('s', shard), tableName('r', shard)]
  return `CREATE TABLE ${u} (key bytea PRIMARY KEY, value bytea NOT NULL);
CREATE TABLE ${s} (key bytea PRIMARY KEY, value bytea NOT NULL) WITH (${tableSettings.s.join(', ')});
CREATE TABLE ${r} (key bytea PRIMARY KEY, value bytea NOT NULL);
ALTER TABLE ${u} ALTER value SET STORAGE EXTERNAL;
ALTER TABLE ${u} SET (${tableSettings.u.join(', ')});`
}
