/**
 * Kills a server at every boundary of a relay (the quick half at some of them), and a node at the two that a database has. `npm run relay-soak` kills more
 * often; test/soak/README.md says what is done and checked.
 */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { runRelayKills } from '../relay/relay-run.ts'
import { boundaries } from '../relay/relay-world.ts'
import { drawnRuns } from '../support/kit/drawn-runs.ts'
import { postgresObstacle } from '../support/server/postgres.ts'

const { SEED = '3' } = process.env

async function kill(t: TestContext, kind: 'server' | 'nodes', kills: number): Promise<void> {
  const seed = Number(SEED)
  const log = (line: string): void => t.diagnostic(line)
  const run = await runRelayKills(t, { kind, kills, seed, log })
  const command = `npm run relay-soak -- --kind ${kind} --kills ${kills} --seed ${seed}`
  assert.deepEqual(run.violations, [], `replay: ${command}`)
  assert.equal(run.kills.length, kills)
  assert(run.received === run.made && run.made >= kills, `${run.made} made`)
}

test('a relay that is killed at any boundary loses, doubles and reorders nothing', (t) =>
  kill(t, 'server', drawnRuns(boundaries.length)))

test(
  'the relays of a node that is killed go on at another one',
  { skip: postgresObstacle() ?? false },
  (t) => kill(t, 'nodes', 1),
)
