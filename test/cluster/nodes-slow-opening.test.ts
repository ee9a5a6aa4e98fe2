/** A shard that is handed over to another node takes long to open there: nothing that waits for it is refused. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ownerWaitMs } from '../../src/api/limits.ts'
import { startBalancedCluster } from '../support/server/cluster.ts'
import { botsOfAllShards, databaseWorld } from '../support/server/database.ts'
import { until } from '../support/kit/until.ts'

const world = databaseWorld()
/** Longer than a call waits without a word of its shard. */
const openingMs = ownerWaitMs + 2_000

/** The new owner of a shard cannot claim it before this time after the hand-over. */
const slowClaims = `CREATE TABLE given (shard int PRIMARY KEY, at timestamptz NOT NULL);
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

test('a planned move fails no call of its bots, though the shards open slowly', {
  skip: world.obstacle,
}, async (t) => {
  const database = await world.database('slow')
  const cluster = await startBalancedCluster(t, database, { nodes: ['a', 'b'] })
  const { postgres, name } = database
  const a = cluster.node('a')
  const bots = await botsOfAllShards(a)
  await postgres.query(slowClaims, name)
  const refused: string[] = []
  const over = new AbortController()
  let longestMs = 0
  const pushing = bots.map(async ({ botId }) => {
    while (!over.signal.aborted) {
      const startMs = performance.now()
      const { status, text } = await a.admin('POST', `/v1/bots/${botId}/updates`, { message: {} })
      const tookMs = performance.now() - startMs
      longestMs = Math.max(longestMs, tookMs)
      if (status !== 200) refused.push(`${status} after ${Math.round(tookMs)} ms: ${text}`)
    }
  })
  await postgres.query(`UPDATE node SET state = 'leaving' WHERE name = 'b'`, name)
  assert.equal(await cluster.forget('b').ended(), 0)
  await until(async () => (await cluster.owners()).every((owner) => owner === 'a'), 60_000)
  await cluster.balanced(['a'])
  over.abort()
  await Promise.all(pushing)
  assert.deepEqual(refused, [])
  assert(longestMs > ownerWaitMs, `no call waited longer than ${longestMs} ms`)
})
