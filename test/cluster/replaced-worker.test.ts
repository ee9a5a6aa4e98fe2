/** How soon a killed worker is replaced. In a file of its own, because other tests beside it would slow it down. */
import assert from 'node:assert/strict'
import { Agent } from 'node:http'
import { test } from 'node:test'
import { getMe } from '../support/bots/get-me.ts'
import { botOf } from '../support/server/bot-of.ts'
import { servingLines } from '../support/server/serving-lines.ts'
import { startServer } from '../support/server/server.ts'

/** Far more than the second that it takes on an idle machine. */
const backWithinMs = 4_000

test("a killed worker is replaced soon, its bots' calls wait, and calls of all other bots succeed", async (t) => {
  const server = await startServer(t, { workers: 2 })
  const dying = await server.register(botOf(0))
  const living = await server.register(botOf(1))
  // This connection belongs to the living worker, which forwards calls for the dying one.
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.after(() => agent.destroy())
  assert.equal(await getMe(server, living.token, agent), 200)
  const [first] = servingLines(server).filter(({ worker }) => worker === 0)
  assert(first !== undefined)
  process.kill(first.workerPid, 'SIGKILL')
  const killedAtMs = Date.now()
  const waiting = [
    ...Array.from({ length: 20 }, () => getMe(server, dying.token)),
    getMe(server, dying.token, agent),
  ]
  let answered = 0
  let slowestMs = 0
  while (servingLines(server).length < 3 && Date.now() - killedAtMs < 2 * backWithinMs) {
    const sentAtMs = Date.now()
    assert.equal(await getMe(server, living.token), 200)
    slowestMs = Math.max(slowestMs, Date.now() - sentAtMs)
    answered += 1
  }
  const backMs = Date.now() - killedAtMs
  assert.deepEqual([...new Set(await Promise.all(waiting))], [200])
  assert(Date.now() - killedAtMs < backWithinMs, `answered after ${Date.now() - killedAtMs} ms`)
  assert(backMs < backWithinMs, `back after ${backMs} ms`)
  assert(answered > 10 && slowestMs < 1_000, `${answered} calls, the slowest took ${slowestMs} ms`)
  t.diagnostic(`back after ${backMs} ms, ${answered} other calls meanwhile`)
})
