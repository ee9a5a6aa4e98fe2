/** `./examples/cluster/run` as a person uses it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { haproxyObstacle } from '../support/programs/haproxy.ts'
import { postgresObstacle } from '../support/server/postgres.ts'
import { RunningScript } from '../support/kit/running-script.ts'
import { until } from '../support/kit/until.ts'

test('the example of a cluster accepts on while a node is killed, and ends with all of its processes', {
  skip: postgresObstacle() ?? haproxyObstacle() ?? false,
}, async (t) => {
  const script = new RunningScript(t, './examples/cluster/run')
  const [, url = ''] = await script.printed(/private API (http\S+)/)
  await script.printed(/accepted [1-9]/)
  script.type('kill a')
  await script.printed(/node a is killed/)
  // It had all shards, so nothing is accepted before the others have them.
  await until(() => /a 0,.*\n(?:.*\n)*accepted/.test(script.output), 30_000)
  const before = last(script)
  await until(() => last(script).accepted > before.accepted + 5, 30_000)
  await until(() => last(script).received > before.accepted, 30_000)
  assert.deepEqual([last(script).gaps, last(script).twice], [0, 0])
  script.type('nodes')
  await script.printed(/a: killed, shards none/)
  script.type('quit')
  assert.equal(await script.exitCode(), 0)
  await assert.rejects(fetch(`${url}/readyz`))
})

interface Line {
  readonly accepted: number
  readonly received: number
  readonly gaps: number
  readonly twice: number
}

function last({ output }: RunningScript): Line {
  const lines = [...output.matchAll(/accepted (\d+), received (\d+), gaps (\d+), twice (\d+)/g)]
  const [, accepted, received, gaps, twice] = (lines.at(-1) ?? []).map(Number)
  return { accepted: accepted ?? 0, received: received ?? 0, gaps: gaps ?? 0, twice: twice ?? 0 }
}
