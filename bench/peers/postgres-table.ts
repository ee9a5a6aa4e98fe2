/**
 * A plain table in PostgreSQL. A push is one INSERT of arrays and a notification. A few readers divide the queues; each
 * selects the oldest events of its share, and deletes them by their ids when they are processed. Prepared statements
 * save the planning.
 */
import type { Client } from 'pg'
import type { EventSink, Peer, PushedEvent } from './peer.ts'
import { postgresClient, postgresUrl, startPostgres } from './postgres-server.ts'

/** Connections of producers, and as many of readers. */
const shares = 4
const eventsPerReadMax = 500

const schema = `
  CREATE TABLE event (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    queue integer NOT NULL,
    body text NOT NULL
  ) WITH (autovacuum_vacuum_scale_factor = 0.5);
  CREATE INDEX event_of_share ON event ((queue % ${shares}), id)`

const insert = `
  WITH pushed AS (INSERT INTO event (queue, body) SELECT * FROM unnest($1::integer[], $2::text[]))
  SELECT pg_notify($3, '')`

const select = `
  SELECT id, queue, body FROM event WHERE queue % ${shares} = $1 ORDER BY id LIMIT ${eventsPerReadMax}`

export const postgresTable: Peer = {
  lanes: shares,
  batchMax: 500,
  start: (context) =>
    startPostgres(context, async (url) => {
      const client = await postgresClient(url)
      await client.query(schema)
      await client.end()
    }),
  async connect(address) {
    const url = postgresUrl(address)
    const clients = await Promise.all(Array.from({ length: shares }, () => postgresClient(url)))
    return { push: (lane, events) => pushed(clients[lane], lane, events) }
  },
  async consume(address, _queues, sink) {
    for (let share = 0; share < shares; share++) {
      const client = await postgresClient(postgresUrl(address))
      const reader = new ShareReader(client, share, sink)
      await reader.listen()
    }
  },
}

async function pushed(
  client: Client | undefined,
  share: number,
  events: readonly PushedEvent[],
): Promise<void> {
  const queues = events.map(({ queue }) => queue)
  const bodies = events.map(({ event }) => JSON.stringify(event))
  await client?.query({ name: 'insert', text: insert, values: [queues, bodies, channelOf(share)] })
}

function channelOf(share: number): string {
  return `share_${share}`
}

interface Row {
  readonly id: string
  readonly body: string
}

/** Reads until nothing is left, and again after the next notification. */
class ShareReader {
  readonly #client: Client
  readonly #share: number
  readonly #sink: EventSink
  #isReading = false
  #isNotified = false

  constructor(client: Client, share: number, sink: EventSink) {
    this.#client = client
    this.#share = share
    this.#sink = sink
  }

  async listen(): Promise<void> {
    this.#client.on('notification', () => {
      this.#isNotified = true
      if (!this.#isReading) void this.#readAll()
    })
    await this.#client.query(`LISTEN ${channelOf(this.#share)}`)
  }

  async #readAll(): Promise<void> {
    this.#isReading = true
    while (this.#isNotified) {
      this.#isNotified = false
      while ((await this.#readSome()) === eventsPerReadMax);
    }
    this.#isReading = false
  }

  async #readSome(): Promise<number> {
    const { rows } = await this.#client.query<Row>({
      name: 'select',
      text: select,
      values: [this.#share],
    })
    if (rows.length === 0) return 0
    for (const { body } of rows) this.#sink.arrived(JSON.parse(body))
    await this.#client.query({
      name: 'delete',
      text: 'DELETE FROM event WHERE id = ANY($1::bigint[])',
      values: [rows.map(({ id }) => id)],
    })
    this.#sink.confirmed(rows.length)
    return rows.length
  }
}
