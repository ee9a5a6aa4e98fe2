/**
 * The tables of a database, and the row that says which cluster they belong to.
 *
 *   cluster   one row: what `postbote database init` fixed
 *   node      a row for each living node
 *   shard     a row for each shard: its owner, and its epoch, which rises with each owner
 *   u_k s_k r_k   the records of shard k, with the keys and values of docs/storage.md: updates; ids and counts; the rest
 *
 * `fillfactor` leaves room on the page for the next version of a row that is overwritten all the time (table-settings.ts).
 * The values of updates are not compressed, because they are short-lived.
 */
import { randomUUID } from 'node:crypto'
import { type ClusterRow, hasSchema, schemaFormat } from './cluster-row.ts'
import type { PgConnection } from './pg-connection.ts'
import { tableName } from './named-statement.ts'
import { tableSettings } from './table-settings.ts'

const sharedTables = `CREATE TABLE cluster (id uuid NOT NULL, format int NOT NULL, shards int NOT NULL, databases int NOT NULL, number int NOT NULL, admin_key text);
CREATE TABLE node (name text PRIMARY KEY, boot text NOT NULL UNIQUE, beat bigint NOT NULL, address text NOT NULL, workers int NOT NULL, state text NOT NULL) WITH (fillfactor = 50);
CREATE TABLE shard (shard int PRIMARY KEY, epoch bigint NOT NULL, node text NOT NULL, boot text NOT NULL) WITH (fillfactor = 50);`

/**
 * Creates all tables in one transaction.
 *
 * @returns the cluster's row
 * @throws DatabaseError if a table exists or the role may not create tables; nothing was created then
 */
export async function createSchema(connection: PgConnection, shards: number): Promise<ClusterRow> {
  if (await hasSchema(connection)) {
    throw new Error('the database already has the tables of a cluster')
  }
  const all = Array.from({ length: shards }, (_, shard) => shard)
  const row = { id: randomUUID(), format: schemaFormat, shards, databases: 1, number: 0 }
  const text = [
    'BEGIN;',
    sharedTables,
    ...all.map(shardTables),
    `INSERT INTO cluster VALUES ('${row.id}', ${row.format}, ${shards}, ${row.databases}, ${row.number}, NULL);`,
    ...all.map((shard) => `INSERT INTO shard VALUES (${shard}, 0, '', '');`),
    'COMMIT;',
  ].join('\n')
  await connection.runScript(text)
  return row
}

function shardTables(shard: number): string {
  const [u, s, r] = [tableName('u', shard), tableName('s', shard), tableName('r', shard)]
  return `CREATE TABLE ${u} (key bytea PRIMARY KEY, value bytea NOT NULL);
CREATE TABLE ${s} (key bytea PRIMARY KEY, value bytea NOT NULL) WITH (${tableSettings.s.join(', ')});
CREATE TABLE ${r} (key bytea PRIMARY KEY, value bytea NOT NULL);
ALTER TABLE ${u} ALTER value SET STORAGE EXTERNAL;
ALTER TABLE ${u} SET (${tableSettings.u.join(', ')});`
}
