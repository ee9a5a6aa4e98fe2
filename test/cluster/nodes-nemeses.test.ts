/**
 * Three nodes under load, while nodes, the database and the way between them fail. Whatever was accepted is received exactly
 * once and in order. `npm run cluster-soak` repeats these and other events for hours; test/soak/README.md describes it.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nemesisEvents } from '../nemeses/nemesis-events.ts'
import { NemesisWorld } from '../nemeses/nemesis-world.ts'
import { postgresObstacle } from '../support/server/postgres.ts'

const { EVENTS = 'node-freeze,node-and-primary,drain', SEED = '1', LOGS } = process.env

test('a cluster loses, doubles and reorders nothing while nodes and databases fail', {
  skip: postgresObstacle() ?? false,
}, async (t) => {
  const world = await NemesisWorld.start(t, {
    seed: Number(SEED),
    log: (line) => t.diagnostic(line),
  })
  await world.balanced()
  for (const name of EVENTS.split(',')) {
    const event = Object.entries(nemesisEvents).find(([key]) => key === name)?.[1]
    assert(event !== undefined, `there is no event ${name}`)
    await world.measure(event)
  }
  const violations = await world.end()
  t.diagnostic(JSON.stringify(world.totals()))
  if (LOGS !== undefined) world.logs.write(LOGS)
  for (const [line, count] of world.logs.counts) t.diagnostic(`${count} x ${line}`)
  assert.deepEqual(violations, [])
})
