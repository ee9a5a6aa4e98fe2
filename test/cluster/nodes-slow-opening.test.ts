/**
 * A shard that is handed over to another node takes long to open there: no push, poll, tail or read that waits for it is refused.
 *
 * `OPENINGS=3000,18000` tries other times, in ms. One of more than `ownerWaitMsMax` refuses.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ownerWaitMs } from '../../src/api/limits.ts'
import { OrderedPushes } from '../nemeses/ordered-pushes.ts'
import { until } from '../support/kit/until.ts'
import { TailReader } from '../support/producers/tail-reader.ts'
import { startBalancedCluster } from '../support/server/cluster.ts'
import { botsOfAllShards, databaseWorld } from '../support/server/database.ts'
import type { RegisteredBot, Server } from '../support/server/server.ts'

const world = databaseWorld()
/** The default is longer than a call waits without a word of its shard. */
const { OPENINGS = `${ownerWaitMs + 2_000}` } = process.env

/** The new owner of a shard cannot claim it before this time after the hand-over. */
function slowClaims(openingMs: number): string {
  return `CREATE TABLE given (shard int PRIMARY KEY, at timestamptz NOT NULL);
CREATE FUNCTION slow_claim() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF NEW.boot <> OLD.boot THEN
    INSERT INTO given VALUES (NEW.shard, clock_timestamp())
    ON CONFLICT (shard) DO UPDATE SET at = clock_timestamp();
  ELSIF EXISTS (SELECT FROM given WHERE shard = NEW.shard
      AND clock_timestamp() < at + interval '${openingMs} ms') THEN
    RAISE EXCEPTION 'not yet';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER slow_claim BEFORE UPDATE ON shard FOR EACH ROW EXECUTE FUNCTION slow_claim()`
}

type Call = (server: Server, bot: RegisteredBot) => Promise<{ status: number; text: string }>

/** Whoever makes one of these makes the next when it has got its answer. */
const calls: Readonly<Record<string, Call>> = {
  push: (server, { botId }) =>
    server.admin('POST', `/v1/bots/${botId}/updates`, { message: { text: 'one' } }),
  read: (server, { botId }) => server.admin('GET', `/v1/bots/${botId}`),
  list: (server, { botId }) => server.admin('GET', `/v1/bots/${botId}/updates?limit=1`),
  poll: (server, { token }) => server.call(token, 'getUpdates', { limit: 1 }),
  async tail(server, { botId }) {
    const tail = await TailReader.open(server, `/v1/bots/${botId}/tail`)
    tail.close()
    return { status: tail.status, text: '' }
  },
}

for (const openingMs of OPENINGS.split(',').map(Number)) {
  test(`a planned move fails no call of its bots, though the shards take ${openingMs} ms to open`, {
    skip: world.obstacle,
  }, async (t) => {
    const database = await world.database(`slow${openingMs}`)
    const cluster = await startBalancedCluster(t, database, { nodes: ['a', 'b'] })
    const { postgres, name } = database
    const a = cluster.node('a')
    const bots = await botsOfAllShards(a)
    await postgres.query(slowClaims(openingMs), name)
    const refused: string[] = []
    const over = new AbortController()
    let longestMs = 0
    const calling = Object.entries(calls).flatMap(([kind, call]) =>
      bots.map(async (bot) => {
        while (!over.signal.aborted) {
          const startMs = performance.now()
          const { status, text } = await call(a, bot)
          const tookMs = performance.now() - startMs
          longestMs = Math.max(longestMs, tookMs)
          if (status !== 200)
            refused.push(`${kind}: ${status} in ${Math.round(tookMs)} ms: ${text}`)
        }
      }),
    )
    const pushes = new OrderedPushes({ bots: bots.map(({ botId }) => botId), nodeOf: () => a })
    pushes.start('a')
    await postgres.query(`UPDATE node SET state = 'leaving' WHERE name = 'b'`, name)
    assert.equal(await cluster.forget('b').ended(), 0)
    await until(async () => (await cluster.owners()).every((owner) => owner === 'a'), 60_000)
    await cluster.balanced(['a'])
    over.abort()
    await Promise.all([...calling, pushes.end()])
    assert.deepEqual(refused, [])
    assert.deepEqual([pushes.pairs.refused, pushes.calls.refused], [{}, {}])
    assert(longestMs > openingMs - 2_000, `no call waited longer than ${longestMs} ms`)
  })
}
