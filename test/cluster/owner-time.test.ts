/** Who asks for as much as a link allows takes no more of a worker's time than it may, so other bots hardly wait. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { botOf } from '../support/server/bot-of.ts'
import { BotOwner } from '../support/server/bot-owner.ts'
import { type RegisteredBot, type Server, startServer } from '../support/server/server.ts'
import { keepMany, p95Of, ratioMax, tries, usualMs } from '../support/server/waits.ts'

const calls = 200
const dryRunsAtOnce = 30

/** Returns the 95th percentile of the times of calls and pushes of a bot, in milliseconds. */
async function waitsOf(server: Server, { botId, token }: RegisteredBot): Promise<number> {
  const times: number[] = []
  for (let nth = 0; nth < calls; nth++) {
    const startMs = performance.now()
    if (nth % 2 === 0) await server.call(token, 'getMe')
    else await server.push(botId, { message: { text: 'hello' } })
    times.push(performance.now() - startMs)
    await sleep(10)
  }
  return p95Of(times)
}

test('dry runs and lists of an owner over many kept updates hardly delay the calls and pushes of other bots', async (t) => {
  const server = await startServer(t, { workers: 1, flags: ['--retain=1h'] })
  const [greedy, other] = [await server.register(botOf(0)), await server.register(botOf(0, 1))]
  await keepMany(server, greedy)
  const owner = await BotOwner.of(server, greedy.botId)
  const rounds: string[] = []
  for (let nth = 0; nth < tries; nth++) {
    const withoutMs = await waitsOf(server, other)
    const attack = attackOf(owner)
    const withMs = await waitsOf(server, other)
    assert.deepEqual(await attack.end(), new Set([200, 429]))
    rounds.push(`p95 ${withoutMs} ms without, ${withMs} ms with`)
    if (withMs <= ratioMax * Math.max(withoutMs, usualMs)) {
      t.diagnostic(rounds.join('; '))
      return
    }
  }
  assert.fail(rounds.join('; '))
})

/** Dry runs and lists, until it is ended, which returns the statuses of their answers. */
function attackOf(owner: BotOwner): { readonly end: () => Promise<ReadonlySet<number>> } {
  const aborter = new AbortController()
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
    for (; !aborter.signal.aborted; await sleep(200)) await attack()
  })
  return {
    async end() {
      aborter.abort()
      await Promise.all(attacks)
      return statuses
    },
  }
}
