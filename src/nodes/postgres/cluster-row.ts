/** The row of a database that says which cluster it belongs to, and what was fixed for it. */
import type { PgConnection } from './pg-connection.ts'
import { tableKinds, tableName } from './named-statement.ts'
import { type ClusterPart, shardsOfDatabase } from '../../store/database-of-shard.ts'

export interface ClusterRow extends ClusterPart {
  readonly id: string
  /** The format of tables, keys and values. */
  readonly format: number
  /** The added types, as they are stored (added-type.ts). */
  readonly types: readonly string[]
}

export const schemaFormat = 1
/** The format once there is an added type, whose list is in the column `types`. An older server refuses it. */
const typedSchemaFormat = 2
/** A server has this setting on while it adds its row to the nodes. */
export const knowsTypesSetting = 'postbote.knows_types'
/** The format of a database while it is being filled. */
const unfinishedFormat = 0

/** The database responds, and it has no tables of a cluster that this version can use. */
export class SchemaError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'SchemaError'
  }
}

/** Tables without added types have no column for them, or null in it if a server was ended before it wrote the list. */
const storedList = "coalesce(nullif(to_jsonb(cluster) -> 'types', 'null'), '[]') AS types"
const noSchema = 'the database has no tables of Postbote; create them with postbote database init'

/**
 * Reads the cluster's row.
 *
 * @throws SchemaError if there is none, or if another version of Postbote wrote it
 */
export async function readCluster(connection: PgConnection): Promise<ClusterRow> {
  if (!(await hasSchema(connection))) throw new SchemaError(noSchema)
  const [row] = await connection.run<ClusterRow & { readonly [column: string]: unknown }>({
    text: `SELECT id, format, shards, databases, number, ${storedList} FROM cluster`,
  })
  if (row === undefined) throw new SchemaError(noSchema)
  if (row.format === unfinishedFormat) {
    throw new SchemaError(
      'an import into this database did not end: create the database anew, and import again',
    )
  }
  if (row.format !== schemaFormat && row.format !== typedSchemaFormat) {
    throw new SchemaError(
      `the database has format ${row.format}, and this version of Postbote reads formats ${schemaFormat} and ${typedSchemaFormat}`,
    )
  }
  return row
}

export async function hasSchema(connection: PgConnection): Promise<boolean> {
  const text =
    "SELECT to_regclass('cluster') IS NOT NULL AND to_regclass('shard') IS NOT NULL AS has"
  const [row] = await connection.run<{ readonly has: boolean }>({ text })
  return row?.has === true
}

/** Marks a database that is being filled. */
export async function setUnfinished(connection: PgConnection): Promise<void> {
  await connection.run({ text: 'UPDATE cluster SET format = $1' }, [unfinishedFormat])
}

/** Marks a database that was filled. */
export async function setFinished(
  connection: PgConnection,
  types: readonly string[],
): Promise<void> {
  if (types.length === 0) {
    await connection.run({ text: 'UPDATE cluster SET format = $1' }, [schemaFormat])
  } else {
    await addTypesColumn(connection)
    await writeTypes(connection, types)
  }
}

/**
 * Returns the added types once no other connection is changing them.
 *
 * @param lock - `UPDATE` keeps others from changing them until the end of the transaction
 */
export async function readTypes(
  connection: PgConnection,
  lock: 'SHARE' | 'UPDATE' = 'SHARE',
): Promise<readonly string[]> {
  const [row] = await connection.run<{ readonly types: readonly string[] }>({
    text: `SELECT ${storedList} FROM cluster FOR ${lock}`,
  })
  return row?.types ?? []
}

/** Makes room for added types. Not within a transaction that has locked the row, which others wait for with a lock of the table. */
export async function addTypesColumn(connection: PgConnection): Promise<void> {
  await connection.run({ text: 'ALTER TABLE cluster ADD COLUMN IF NOT EXISTS types jsonb' })
}

/**
 * Keeps servers of earlier versions out from now on, one that has read the row before the list was in it, too: they do not
 * say that they know of added types (pg-nodes.ts), so a constraint refuses their rows, and its name is in their error.
 */
export async function refuseEarlierVersions(connection: PgConnection): Promise<void> {
  const column = 'ALTER TABLE node ADD COLUMN IF NOT EXISTS types boolean DEFAULT true'
  await connection.run({
    text: `${column} CONSTRAINT this_version_knows_added_types CHECK (types)`,
  })
  const knows = `current_setting('${knowsTypesSetting}', true) IS NOT DISTINCT FROM 'on'`
  await connection.run({ text: `ALTER TABLE node ALTER COLUMN types SET DEFAULT (${knows})` })
}

/** Stores the list of added types, and with it the format that older servers refuse. */
export async function writeTypes(
  connection: PgConnection,
  types: readonly string[],
): Promise<void> {
  await connection.run({ text: 'UPDATE cluster SET types = $1::jsonb, format = $2' }, [
    JSON.stringify(types),
    typedSchemaFormat,
  ])
}

/** Returns the fingerprint of the admin key of the last node that joined. */
export async function readKeyFingerprint(connection: PgConnection): Promise<string | undefined> {
  const [row] = await connection.run<{ readonly admin_key: string | null }>({
    text: 'SELECT admin_key FROM cluster',
  })
  return row?.admin_key ?? undefined
}

export async function writeKeyFingerprint(
  connection: PgConnection,
  fingerprint: string,
): Promise<void> {
  await connection.run({ text: 'UPDATE cluster SET admin_key = $1' }, [fingerprint])
}

/** Returns whether any shard of a database has a record. */
export async function holdRecords(connection: PgConnection, part: ClusterPart): Promise<boolean> {
  for (const shard of shardsOfDatabase(part)) {
    if (await holdsRecords(connection, shard)) return true
  }
  return false
}

/** Returns whether this shard has a record. */
export async function holdsRecords(connection: PgConnection, shard: number): Promise<boolean> {
  const found = tableKinds.map((kind) => `EXISTS (SELECT FROM ${tableName(kind, shard)})`)
  const [row] = await connection.run<{ readonly holds: boolean }>({
    text: `SELECT ${found.join(' OR ')} AS holds`,
  })
  return row?.holds === true
}
