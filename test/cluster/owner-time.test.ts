/** Owners who ask for as much as their links allow take no more of a worker's time than their bot may, so others hardly wait. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { botOf } from '../support/server/bot-of.ts'
import { BotOwner } from '../support/server/bot-owner.ts'
import { type RegisteredBot, type Server, startServer } from '../support/server/server.ts'

const kept = 30_000
const calls = 200
const dryRunsAtOnce = 30
/** What others may wait with owners who do their worst, as a multiple of what they wait without. */
const ratioMax = 3
/** A time below this is that of one usual turn of a busy machine, with and without owners. */
const usualMs = 15

/** Has a bot confirm many updates, which are kept. */
async function keepMany(server: Server, { botId, token }: RegisteredBot): Promise<void> {
  const pairs = Array.from(
    { length: kept },
    (_, nth) => `{"bot_id":${botId}}\n{"message":{"message_id":${nth}}}\n`,
  )
  const { status, text } = await server.admin('POST', '/v1/updates', pairs.join(''))
  assert.equal(status, 200, text)
  for (let offset = 0; ; ) {
    const { body } = await server.call(token, 'getUpdates', { offset, limit: 100 })
    const last = body.result.at(-1)
    if (last === undefined) return
    offset = last.update_id + 1
  }
}

/** Returns the 95th percentile of the times of calls and pushes of a bot, in milliseconds. */
async function p95Of(server: Server, { botId, token }: RegisteredBot): Promise<number> {
  const times: number[] = []
  for (let nth = 0; nth < calls; nth++) {
    const startMs = performance.now()
    if (nth % 2 === 0) await server.call(token, 'getMe')
    else await server.push(botId, { message: { text: 'hello' } })
    times.push(performance.now() - startMs)
    await sleep(10)
  }
  return times.toSorted((a, b) => a - b)[Math.floor(0.95 * calls)] ?? 0
}

test('dry runs and lists of an owner over many kept updates hardly delay the calls and pushes of other bots', async (t) => {
  const server = await startServer(t, { workers: 1, flags: ['--retain=1h'] })
  const [greedy, other] = [await server.register(botOf(0)), await server.register(botOf(0, 1))]
  await keepMany(server, greedy)
  const owner = await BotOwner.of(server, greedy.botId)
  const without = await p95Of(server, other)
  const end = new AbortController()
  const statuses = new Set<number>()
  const dryRun = () => owner.call('POST', '/updates/replay', { dry_run: true })
  const dryRuns = async (): Promise<void> => {
    for (const { status } of await Promise.all(Array.from({ length: dryRunsAtOnce }, dryRun))) {
      statuses.add(status)
    }
  }
  const lists = async (): Promise<void> => {
    statuses.add((await owner.call('GET', '/updates?ordering_key=none')).status)
  }
  const attacks = [dryRuns, lists, lists, lists, lists].map(async (attack) => {
    for (; !end.signal.aborted; await sleep(200)) await attack()
  })
  const withOwners = await p95Of(server, other)
  end.abort()
  await Promise.all(attacks)
  t.diagnostic(`p95 ${without} ms without, ${withOwners} ms with`)
  assert.deepEqual(statuses, new Set([200, 429]))
  assert(
    withOwners <= ratioMax * Math.max(without, usualMs),
    `p95 was ${withOwners} ms instead of ${without} ms`,
  )
})
