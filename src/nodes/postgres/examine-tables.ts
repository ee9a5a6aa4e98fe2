/** Looks for tables of shards that are missing, left over, or other than create-schema.ts makes them. */
import { bad, type Finding, listed, warn } from '../../kit/finding.ts'
import { tableKinds, tableName } from './named-statement.ts'
import type { PgConnection } from './pg-connection.ts'
import type { TableKind } from './pg-group.ts'
import { tableSettings } from './create-schema.ts'

interface TableRow {
  readonly name: string
  readonly settings: readonly string[] | null
  /** Whether the table survives a crash of the database. */
  readonly is_logged: boolean
  /** How values are stored: `e` for EXTERNAL. */
  readonly storage: string | null
  /** Whether a valid unique index finds the rows by their key. */
  readonly is_indexed: boolean
  readonly is_own: boolean
  /** Whether the shard has a row in the table `shard`. */
  readonly has_row: boolean
  readonly [column: string]: unknown
}

/** The unique key of each table, by which statements find rows. */
const keys = { cluster: undefined, node: 'name', shard: 'shard' } as const

const tablesQuery = `SELECT relname AS name, reloptions AS settings, relpersistence = 'p' AS is_logged,
pg_has_role(relowner, 'USAGE') AS is_own, substr(relname, 3) IN (SELECT shard::text FROM shard) AS has_row,
(SELECT attstorage FROM pg_attribute WHERE attrelid = c.oid AND attname = 'value' AND NOT attisdropped) AS storage,
EXISTS (SELECT FROM pg_index i JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]
  WHERE i.indrelid = c.oid AND i.indisunique AND i.indisvalid AND i.indisready AND i.indimmediate
  AND i.indpred IS NULL AND i.indnkeyatts = 1
  AND a.attname = CASE relname WHEN 'node' THEN '${keys.node}' WHEN 'shard' THEN '${keys.shard}' ELSE 'key' END) AS is_indexed
FROM pg_class c WHERE relkind = 'r' AND pg_table_is_visible(oid)
AND (relname IN ('cluster', 'node', 'shard') OR relname ~ '^[usr]_(0|[1-9][0-9]{0,8})$')
ORDER BY relname`

/** The tables of a database. */
export class ExaminedTables {
  readonly #own: readonly number[]
  readonly #tables: ReadonlyMap<string, TableRow>

  /** For `read`. */
  constructor(own: readonly number[], rows: readonly TableRow[]) {
    this.#own = own
    this.#tables = new Map(rows.map((row) => [row.name, row]))
  }

  /** @param own - the shards that this database should have */
  static async read(connection: PgConnection, own: readonly number[]): Promise<ExaminedTables> {
    return new ExaminedTables(own, await connection.run<TableRow>({ text: tablesQuery }))
  }

  /** Whether all tables of the shard are there. */
  has(shard: number): boolean {
    return tableKinds.every((kind) => this.#tables.has(tableName(kind, shard)))
  }

  get hasNodes(): boolean {
    return this.#tables.has('node')
  }

  findings(): readonly Finding[] {
    return [
      ...this.#missing(),
      ...this.#leftOver(),
      ...this.#unusable(),
      ...tableKinds.flatMap((kind) => this.#otherSettings(kind)),
      ...this.#compressed(),
    ]
  }

  #names(kind: TableKind): readonly string[] {
    return this.#own.map((shard) => tableName(kind, shard))
  }

  #missing(): readonly Finding[] {
    const missing = ['node', ...tableKinds.flatMap((kind) => this.#names(kind))].filter(
      (name) => !this.#tables.has(name),
    )
    return missing.length === 0
      ? []
      : [
          bad(
            `${tables(missing)} missing: restore the database from a backup that has ${them(missing)}`,
          ),
        ]
  }

  #leftOver(): readonly Finding[] {
    const expected = new Set(tableKinds.flatMap((kind) => this.#names(kind)))
    // If a shard has a row, the row is what must be decided on first (examine-rows.ts).
    const others = namesOf(
      [...this.#tables.values()].filter(
        ({ name, has_row: hasRow }) => /^._/.test(name) && !hasRow && !expected.has(name),
      ),
    )
    return others.length === 0
      ? []
      : [
          warn(
            `${tables(others)} left over from shards that this database does not have: drop ${them(others)} if nothing in ${them(others)} is needed`,
          ),
        ]
  }

  /** Without an index each statement reads the whole table, and an update or an owner can be there twice. */
  #unusable(): readonly Finding[] {
    const all = [...this.#tables.values()]
    const findings: Finding[] = []
    const foreign = namesOf(all.filter(({ is_own: isOwn }) => !isOwn))
    if (foreign.length > 0) {
      findings.push(bad(`${tables(foreign)} owned by another role: connect as the owner`))
    }
    const unlogged = namesOf(all.filter(({ is_logged: isLogged }) => !isLogged))
    if (unlogged.length > 0) {
      findings.push(
        bad(
          `${tables(unlogged)} not logged, so a crash of the database or its failover empties ${them(unlogged)}: ALTER TABLE ${unlogged[0]} SET LOGGED`,
        ),
      )
    }
    const bare = all.filter(({ name, is_indexed: isIndexed }) => name !== 'cluster' && !isIndexed)
    for (const { name } of bare) {
      findings.push(
        bad(
          `the table ${name} has no valid primary key: drop an invalid index, and ALTER TABLE ${name} ADD PRIMARY KEY (${keyOf(name)})`,
        ),
      )
    }
    return findings
  }

  #otherSettings(kind: TableKind): readonly Finding[] {
    const expected = tableSettings[kind]
    const others = this.#rows(kind).filter(({ settings }) =>
      expected.some((setting) => settings?.includes(setting) !== true),
    )
    if (others.length === 0) return []
    const names = namesOf(others)
    return [
      warn(
        `${tables(names)} without a setting, so deleted rows take room and time: ALTER TABLE ${names[0]} SET (${expected.join(', ')})`,
      ),
    ]
  }

  #compressed(): readonly Finding[] {
    const names = namesOf(this.#rows('u').filter(({ storage }) => storage !== 'e'))
    if (names.length === 0) return []
    return [
      warn(
        `${tables(names)} made to compress updates, which costs time: ALTER TABLE ${names[0]} ALTER value SET STORAGE EXTERNAL`,
      ),
    ]
  }

  #rows(kind: TableKind): readonly TableRow[] {
    return this.#names(kind).flatMap((name) => this.#tables.get(name) ?? [])
  }
}

function namesOf(rows: readonly TableRow[]): readonly string[] {
  return rows.map(({ name }) => name)
}

function keyOf(table: string): string {
  return table === 'node' || table === 'shard' ? keys[table] : 'key'
}

function tables(names: readonly string[]): string {
  return names.length === 1 ? `the table ${names[0]} is` : `the tables ${listed(names)} are`
}

function them(names: readonly string[]): string {
  return names.length === 1 ? 'it' : 'them'
}
