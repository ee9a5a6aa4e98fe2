/**
 * One connection to the primary of a database. All of its servers are tried at once. One counts if it is no standby and its
 * timeline is not older than any that this process has seen: an old primary that comes back after a failover is left alone.
 *
 * A statement without a response in time ends the connection, and so does every failure that leaves its outcome unknown.
 * After that each statement rejects, and whoever uses the connection opens another one.
 */
import { Client, type QueryResultRow } from 'pg'
import { messageOf } from '../../kit/errors.ts'
import { Mutex } from '../../kit/mutex.ts'
import { sleep, systemClock } from '../../kit/clock.ts'
import { isRefusal } from './sql-state.ts'
import type { NamedStatement } from './named-statement.ts'
import type { PgServerAddress, PgUrl } from '../../api/pg-url.ts'

/** A life of a server: another one may have other rows. */
export interface PgServerLife {
  readonly address: PgServerAddress
  /** Rises with each failover; the text sorts. */
  readonly timeline: string
  /** The timeline, and when the server started; the text sorts by timelines. */
  readonly identity: string
}

/** A connection that was made and checked. */
interface Opened {
  readonly client: Client
  readonly server: PgServerLife
  /** The process of the server that serves the connection. */
  readonly backend: number
}

export interface PgConnectionOptions {
  readonly database: PgUrl
  /** The `application_name`; a claim ends connections by it. At most 63 bytes. */
  readonly name: string
  /** Only this life of this server counts. */
  readonly server?: PgServerLife | undefined
  /** How long a statement may take, in ms. */
  readonly statementMs?: number
}

/** No server of the database can be used; the message says why for each of them. */
export class NoServerError extends Error {
  /** @param causes - for each of the servers */
  constructor(servers: readonly PgServerAddress[], causes: readonly unknown[]) {
    const reasons = servers.map(({ shown }, nth) => `${shown}: ${messageOf(causes[nth])}`)
    super(`no server of the database can be used: ${reasons.join('; ')}`, {
      cause: new AggregateError(causes),
    })
    this.name = 'NoServerError'
  }
}

/** The highest timeline of each database that this process has seen, by its servers and name. */
const newestTimelines = new Map<string, string>()

/** A statement waits this long for a lock. A claim that waits longer ends the connections of the old owner. Measured. */
const pgLockMs = 300
/** A server that is not connected in this time counts as away. Chosen: one lost packet is sent again after 1 s. */
const pgConnectMs = 3_000

/**
 * A commit counts when its standbys have it; nothing waits long for a lock; and no plan depends on statistics, because
 * those of tables that fill and empty all the time are wrong.
 */
const sessionSettings = {
  text: [
    'SET synchronous_commit = on',
    `SET lock_timeout = ${pgLockMs}`,
    'SET statement_timeout = 0',
    'SET idle_in_transaction_session_timeout = 0',
    'SET idle_session_timeout = 0',
    "SET default_transaction_isolation = 'read committed'",
    'SET client_min_messages = warning',
    'SET bytea_output = hex',
    'SET plan_cache_mode = force_generic_plan',
    ...['seqscan', 'bitmapscan', 'hashjoin', 'mergejoin', 'material'].map(
      (plan) => `SET enable_${plan} = off`,
    ),
  ].join('; '),
  query_timeout: pgConnectMs,
}

interface ServerRow {
  readonly standby: boolean
  readonly timeline: string | null
  readonly started: string
  readonly backend: number
}

const serverQuery = {
  text: `SELECT pg_is_in_recovery() AS standby,
CASE WHEN pg_is_in_recovery() THEN NULL ELSE left(pg_walfile_name(pg_current_wal_lsn()), 8) END AS timeline,
pg_postmaster_start_time()::text AS started, pg_backend_pid() AS backend`,
  query_timeout: pgConnectMs,
}

const wasClosed = new Error('the connection was closed')

/** `pg` waits as long as for any other statement if this is 0, and no timer can be longer. */
const scriptMs = 2 ** 31 - 1

export class PgConnection {
  readonly server: PgServerLife
  readonly #client: Client
  readonly #statementMs: number
  /** Called once if the connection ends without `close`: whoever waits for no response would not notice. */
  onEnded: ((error: Error) => void) | undefined
  /** Called when another connection has notified a channel on which this one listens. */
  onNotified: (() => void) | undefined
  #failure: Error | undefined
  #warning: string | undefined
  readonly #turns = new Mutex()

  /** For `open`, which has checked the server. */
  constructor({ client, server, backend }: Opened, statementMs: number) {
    this.#client = client
    this.server = server
    this.#statementMs = statementMs
    client.on('error', (error) => this.#end(error))
    client.on('end', () => this.#end(new Error('the database closed the connection')))
    client.on('notice', ({ message }) => (this.#warning = message))
    client.on('notification', ({ processId }) => {
      if (processId !== backend) this.onNotified?.()
    })
  }

  /** @throws NoServerError */
  static async open(options: PgConnectionOptions): Promise<PgConnection> {
    const { database, server } = options
    const addresses = server === undefined ? database.servers : [server.address]
    try {
      return await openNewest(addresses, options)
    } catch (error) {
      throw new NoServerError(addresses, error instanceof AggregateError ? error.errors : [error])
    }
  }

  /** Whether statements can be sent. */
  get isOpen(): boolean {
    return this.#failure === undefined
  }

  /**
   * Runs one statement.
   *
   * @throws DatabaseError if the database refused it; any other error if its outcome is unknown, and then the connection
   *   has ended
   */
  run<Row extends QueryResultRow>(
    statement: NamedStatement | { readonly text: string },
    values: readonly unknown[] = [],
  ): Promise<readonly Row[]> {
    return this.#turns.run(() => this.#run<Row>(statement, values))
  }

  /** Runs several statements without parameters, for as long as they take. */
  async runScript(text: string): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure
    const query = { text, query_timeout: scriptMs }
    await this.#client.query(query)
  }

  /** Ends the connection as a failure does; the outcome of a statement under way is unknown. */
  fail(reason: Error): void {
    this.#end(reason)
  }

  /** Closes the connection; a statement under way is lost. */
  close(): void {
    this.#end(wasClosed)
  }

  async #run<Row extends QueryResultRow>(
    statement: NamedStatement | { readonly text: string },
    values: readonly unknown[],
  ): Promise<readonly Row[]> {
    if (this.#failure !== undefined) throw this.#failure
    try {
      const query = { ...statement, values: [...values], query_timeout: this.#statementMs }
      const { rows } = await this.#client.query<Row>(query)
      // It comes with success, and says that the commit is on one machine only.
      if (this.#warning !== undefined) throw new Error(`the database warned: ${this.#warning}`)
      return rows
    } catch (error) {
      if (!isRefusal(error)) this.#end(error instanceof Error ? error : new Error(String(error)))
      throw error
    }
  }

  #end(reason: Error): void {
    if (this.#failure !== undefined) return
    this.#failure = reason
    this.#client.end().catch(ignore)
    if (reason !== wasClosed) this.onEnded?.(reason)
  }
}

/** A server that refused is asked again after this pause, while another one is silent. Chosen: a heartbeat's pause. */
const pgAskAgainMs = 250
/** After one server of a database has responded, the others have this long. Chosen: a few round trips. */
const pgOthersMs = 100

/**
 * Returns the connection with the highest timeline. After the first one it waits a moment for the others, because a former
 * primary may be up beside the new one, and faster.
 *
 * As long as a server is silent, those that refused are asked again: a primary that is frozen or cut off does not respond,
 * and its standby is promoted meanwhile.
 */
async function openNewest(
  addresses: readonly PgServerAddress[],
  options: PgConnectionOptions,
): Promise<PgConnection> {
  const opened: PgConnection[] = []
  let chosen: PgConnection | undefined
  const attempt = async (address: PgServerAddress): Promise<void> => {
    const connection = await openAt(address, options)
    if (chosen === undefined) opened.push(connection)
    else connection.close()
  }
  let silent = addresses.length
  const firsts = addresses.map((address) => attempt(address).finally(() => silent--))
  const askAgain = async (address: PgServerAddress, refusal: unknown): Promise<void> => {
    for (let error = refusal; ; ) {
      if (silent === 0 || opened.length > 0) throw error
      await sleep(systemClock, pgAskAgainMs)
      if (silent === 0 || opened.length > 0) throw error
      try {
        await attempt(address)
        return
      } catch (again) {
        error = again
      }
    }
  }
  await Promise.any(
    firsts.map((first, nth) => {
      const address = addresses[nth]
      return first.catch((error: unknown) => {
        if (address === undefined) throw error
        return askAgain(address, error)
      })
    }),
  )
  await Promise.race([Promise.allSettled(firsts), sleep(systemClock, pgOthersMs)])
  const newest = opened.reduce((best, one) =>
    one.server.timeline > best.server.timeline ? one : best,
  )
  chosen = newest
  for (const other of opened) if (other !== newest) other.close()
  return newest
}

/** The outcome of a statement without a response in this time is unknown. Chosen: the pause that a failover takes. */
const pgStatementMs = 2_000

async function openAt(
  address: PgServerAddress,
  { database, name, server, statementMs = pgStatementMs }: PgConnectionOptions,
): Promise<PgConnection> {
  const client = new Client({
    connectionString: address.url,
    application_name: name,
    connectionTimeoutMillis: pgConnectMs,
    keepAlive: true,
  })
  client.on('error', ignore)
  try {
    await client.connect()
    const first = await serverRow(client)
    const { timeline } = first
    if (first.standby || timeline === null) throw new Error('it is a standby')
    // A pooler may give every statement another backend, and prepared statements and settings would be lost. It also makes
    // up the process that it announces, so that it is noticed while it has one connection only.
    await client.query(sessionSettings)
    const second = await serverRow(client)
    const backends = new Set([announcedBackend(client), first.backend, second.backend])
    if (backends.size > 1)
      throw new Error('a connection pooler is in between; connect to the server itself')
    const key = database.shown
    const newest = newestTimelines.get(key) ?? ''
    if (timeline < newest)
      throw new Error(`it has timeline ${timeline}, which is older than ${newest}`)
    const identity = `${timeline} ${first.started}`
    if (server !== undefined && server.identity !== identity)
      throw new Error('it was restarted or promoted')
    newestTimelines.set(key, timeline)
    const life = { address, timeline, identity }
    return new PgConnection({ client, server: life, backend: first.backend }, statementMs)
  } catch (error) {
    client.end().catch(ignore)
    throw error
  }
}

/** Returns the process that the server named when the connection was made. The types of `pg` leave this property out. */
function announcedBackend(client: Client & { readonly processID?: unknown }): unknown {
  return client.processID
}

async function serverRow(client: Client): Promise<ServerRow> {
  const { rows } = await client.query<ServerRow>(serverQuery)
  const [row] = rows
  if (row === undefined) throw new Error('it did not describe itself')
  return row
}

function ignore(): void {
  // It was reported, or the connection is not wanted any more.
}

/** One connection that is opened when it is first needed, and again after it broke or could not be opened. */
export class ReopeningConnection {
  readonly #open: () => Promise<PgConnection>
  #opening: Promise<PgConnection> | undefined

  constructor(open: () => Promise<PgConnection>) {
    this.#open = open
  }

  /** Returns the connection. Rejects with the error of `open`. */
  async get(): Promise<PgConnection> {
    const connection = await this.#opened()
    // Whoever waited for the same connection may have replaced it already.
    return connection.isOpen ? connection : this.#opened()
  }

  close(): void {
    this.#opening?.then(
      (connection) => connection.close(),
      () => undefined,
    )
    this.#opening = undefined
  }

  async #opened(): Promise<PgConnection> {
    const opening = (this.#opening ??= this.#open())
    let connection: PgConnection | undefined
    try {
      connection = await opening
      return connection
    } finally {
      if (connection?.isOpen !== true && this.#opening === opening) this.#opening = undefined
    }
  }
}
