/**
 * The promise of the server as a whole, under kill -9: every acknowledged update arrives, in order, and arrives twice
 * only if the server could not know that it had arrived.
 *
 * 1,000 bots (200 in the quick half) get 20 updates each, in rounds; half of them poll, half have a webhook. A worker is killed in the middle of
 * one round, the primary in the middle of a later one. The producer sends a pair again until it has its id. A pair
 * without a result may have been stored, so copies of it with other ids are allowed, and of nothing else.
 */
import assert from 'node:assert/strict'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { test } from 'node:test'
import { drawnRuns } from '../support/kit/drawn-runs.ts'
import { isRunning } from '../support/kit/is-running.ts'
import { PollingBot } from '../support/bots/polling-bot.ts'
import { type PairResult, RawPushStream } from '../support/producers/raw-push-stream.ts'
import { type Server, startServer } from '../support/server/server.ts'
import {
  type ReceivedUpdate,
  startSink,
  type WebhookSink,
} from '../support/webhook/webhook-sink.ts'
import { until } from '../support/kit/until.ts'

const botCount = drawnRuns(1_000)
const roundCount = 10
const updatesPerRound = 2
const roundPauseMs = 200
const sliceSize = 100
const slicePauseMs = 5
const killWorkerInRound = 4
const killPrimaryInRound = 7
/** Updates that were answered or confirmed within this time before a kill may be delivered again. */
const forgottenMsMax = 1_000
/** How long bytes that were sent before a kill may wait in sockets, in addition to the delays of this busy process. */
const noticedMsMax = 2_000
const lateness = monitorEventLoopDelay()

interface TestBot {
  readonly botId: number
  readonly token: string
  poller: PollingBot | undefined
  /** The id of every acknowledged update, by its number. */
  readonly ids: Map<number, number>
  /** How often an update was sent without a result. */
  readonly unknown: Map<number, number>
}

interface Arrival {
  readonly id: number
  readonly seq: number
  readonly key: string
}

/** On a busy machine it takes a while until the killed processes are gone; until then they may still deliver. */
interface Kill {
  readonly atMs: number
  readonly goneMs: number
}

interface Scenario {
  server: Server
  readonly bots: readonly TestBot[]
  readonly kills: Kill[]
}

test('every acknowledged update arrives in order through kill -9 of a worker and of the primary', async (t) => {
  lateness.enable()
  t.after(() => lateness.disable())
  const sink = await startSink(t, (_delivery, response) => {
    setTimeout(() => response.end(), 5)
  })
  const scenario = await setUp(await startServer(t, { workers: 2, flags: ['--local'] }), sink)
  t.after(() => Promise.all(scenario.bots.map(async ({ poller }) => poller?.stop())))
  for (let round = 0; round < roundCount; round++) {
    await pushRound(scenario, round)
    await pause(roundPauseMs)
  }
  assert.equal(scenario.kills.length, 2)
  assert(scenario.bots.some(({ unknown }) => unknown.size > 0))

  const arrivals = (): Map<number, Arrival[]> => arrivalsOf(scenario, sink)
  await until(() => isComplete(scenario, arrivals()), 30_000).catch(() => undefined)
  const arrived = arrivals()
  for (const bot of scenario.bots) checkBot(bot, arrived.get(bot.botId) ?? [])
  checkRepeatedDeliveries(scenario, sink)
  checkRepeatedPolls(scenario)
  await until(async () => {
    const reports = await Promise.all(
      scenario.bots
        .slice(0, 40)
        .map((bot) => scenario.server.admin('GET', `/v1/bots/${bot.botId}`)),
    )
    return reports.every(({ body }) => body.pending === 0)
  })
})

async function setUp(server: Server, sink: WebhookSink): Promise<Scenario> {
  const bots: TestBot[] = []
  const scenario: Scenario = { server, bots, kills: [] }
  const numbers = Array.from({ length: botCount }, (_, number) => 1_000 + number)
  const setUpSome = async (): Promise<void> => {
    for (let botId = numbers.shift(); botId !== undefined; botId = numbers.shift()) {
      const { token } = await server.register(botId)
      const bot: TestBot = {
        botId,
        token,
        poller: undefined,
        ids: new Map(),
        unknown: new Map(),
      }
      bots.push(bot)
      if (botId % 2 === 0) {
        const { status, text } = await server.call(token, 'setWebhook', {
          url: sink.url(`/${botId}`),
        })
        assert.equal(status, 200, text)
      } else {
        bot.poller = new PollingBot({ token, server: () => scenario.server })
      }
    }
  }
  await Promise.all(Array.from({ length: 16 }, setUpSome))
  return scenario
}

/** Sends the updates of the round until all of them are acknowledged, and kills a process during that, if it is due. */
async function pushRound(scenario: Scenario, round: number): Promise<void> {
  let killed: Promise<void> | undefined
  for (let left = pairsOf(scenario, round); left.length > 0; ) {
    const stream = new RawPushStream(scenario.server)
    const failed: typeof left = []
    const results: Promise<void>[] = []
    for (let start = 0; start < left.length; start += sliceSize) {
      for (const pair of left.slice(start, start + sliceSize)) {
        const send = async (): Promise<void> => {
          const head = { bot_id: pair.bot.botId, ordering_key: keyOf(pair.seq) }
          const result = await stream.push(head, updateOf(pair.seq))
          if (!note(pair, result)) failed.push(pair)
        }
        results.push(send())
      }
      await Promise.race([results.at(-1), pause(slicePauseMs)])
      if (start >= left.length / 2) killed ??= kill(scenario, round)
    }
    await Promise.all(results)
    stream.destroy()
    left = failed
    await killed
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

function pairsOf(scenario: Scenario, round: number): { bot: TestBot; seq: number }[] {
  const seqs = Array.from({ length: updatesPerRound }, (_, at) => round * updatesPerRound + at)
  return seqs.flatMap((seq) => scenario.bots.map((bot) => ({ bot, seq })))
}

/** Two updates of one round never have the same key, so a repeated one cannot overtake another. */
function keyOf(seq: number): string {
  return `key ${seq % 4}`
}

function updateOf(seq: number): object {
  return { message: { text: 'x'.repeat(200), seq } }
}

/** Returns whether the pair is done. */
function note(
  { bot, seq }: { bot: TestBot; seq: number },
  result: PairResult | undefined,
): boolean {
  if (result?.update_id !== undefined) {
    assert(!bot.ids.has(seq))
    bot.ids.set(seq, result.update_id)
    return true
  }
  const code = result?.error?.code ?? 'OUTCOME_UNKNOWN'
  assert(['OUTCOME_UNKNOWN', 'STORE_UNAVAILABLE'].includes(code), JSON.stringify(result))
  if (code === 'OUTCOME_UNKNOWN') bot.unknown.set(seq, (bot.unknown.get(seq) ?? 0) + 1)
  return false
}

async function kill(scenario: Scenario, round: number): Promise<void> {
  const { server } = scenario
  if (round === killWorkerInRound) {
    const [worker] = server.workerPids()
    assert(worker !== undefined)
    const atMs = Date.now()
    process.kill(worker, 'SIGKILL')
    await until(() => !isRunning(worker))
    scenario.kills.push({ atMs, goneMs: Date.now() })
  } else if (round === killPrimaryInRound) {
    const workers = server.workerPids()
    const atMs = Date.now()
    await server.killPrimary()
    await until(() => !workers.some((pid) => isRunning(pid)))
    scenario.kills.push({ atMs, goneMs: Date.now() })
    scenario.server = await server.restart()
  }
}

function arrivalsOf({ bots }: Scenario, sink: WebhookSink): Map<number, Arrival[]> {
  const arrivals = new Map<number, Arrival[]>(bots.map(({ botId }) => [botId, []]))
  for (const { path, update } of sink.deliveries) {
    arrivals.get(Number(path.slice(1)))?.push(arrivalOf(update))
  }
  for (const { botId, poller } of bots) {
    for (const { update } of poller?.received ?? []) arrivals.get(botId)?.push(arrivalOf(update))
  }
  return arrivals
}

function arrivalOf(update: ReceivedUpdate): Arrival {
  const seq = Number(update.message?.['seq'])
  return { id: update.update_id, seq, key: keyOf(seq) }
}

function isComplete({ bots }: Scenario, arrivals: Map<number, Arrival[]>): boolean {
  return bots.every(({ botId, ids }) => {
    const arrived = new Set(arrivals.get(botId)?.map(({ id }) => id))
    return [...ids.values()].every((id) => arrived.has(id))
  })
}

function checkBot(bot: TestBot, arrivals: readonly Arrival[]): void {
  const first = new Map<number, Arrival>()
  const lastOfKey = new Map<string, number>()
  for (const arrival of arrivals) {
    if (first.has(arrival.id)) continue
    first.set(arrival.id, arrival)
    const last = lastOfKey.get(arrival.key) ?? 0
    assert(arrival.id > last, `bot ${bot.botId}: ${arrival.id} came behind ${last} of its key`)
    lastOfKey.set(arrival.key, arrival.id)
  }
  assert.equal(bot.ids.size, roundCount * updatesPerRound)
  checkStored(bot, first)
}

/** Of the stored updates, no acknowledged one is missing, nothing else is there, and no id is left out. */
function checkStored(bot: TestBot, first: ReadonlyMap<number, Arrival>): void {
  const acknowledged = new Set(bot.ids.values())
  for (const [seq, id] of bot.ids) {
    assert.equal(first.get(id)?.seq, seq, `bot ${bot.botId}: update ${seq} with id ${id} is lost`)
  }
  const copies = new Map<number, number>()
  for (const { id, seq } of first.values()) {
    if (!acknowledged.has(id)) copies.set(seq, (copies.get(seq) ?? 0) + 1)
  }
  for (const [seq, count] of copies) {
    assert(count <= (bot.unknown.get(seq) ?? 0), `bot ${bot.botId}: update ${seq} was stored twice`)
  }
  const ids = [...first.keys()].toSorted((a, b) => a - b)
  for (const [at, id] of ids.entries()) {
    assert.equal(id, (ids[0] ?? 0) + at, `bot ${bot.botId}: a gap in ${ids.join(' ')}`)
  }
}

/** A webhook gets an update again only if it responded to it in the last second before a kill, or later. */
function checkRepeatedDeliveries({ kills }: Scenario, sink: WebhookSink): void {
  const lastAtMs = new Map<string, number>()
  for (const { path, update, atMs } of sink.deliveries) {
    const place = `${path} ${update.update_id}`
    const before = lastAtMs.get(place)
    lastAtMs.set(place, atMs)
    if (before === undefined) continue
    assert(
      isNearKill(kills, before, atMs),
      `${place} came at ${before} and ${atMs}, kills were ${JSON.stringify(kills)}`,
    )
  }
}

function checkRepeatedPolls({ bots, kills }: Scenario): void {
  for (const { botId, poller } of bots) {
    for (const { updateId, confirmedAtMs } of poller?.repeated ?? []) {
      assert(
        isNearKill(kills, confirmedAtMs, Date.now()),
        `bot ${botId} got ${updateId} again although it had confirmed it`,
      )
    }
  }
}

/**
 * The server may forget the last second before a kill. An update may also reach the sink some time after it was sent:
 * before the kill, or by a worker whose end was not noticed yet.
 */
function isNearKill(kills: readonly Kill[], doneAtMs: number, againAtMs: number): boolean {
  const noticedMs = noticedMsMax + lateness.max / 1e6
  return kills.some(
    ({ atMs, goneMs }) =>
      doneAtMs >= atMs - forgottenMsMax && doneAtMs <= goneMs + noticedMs && againAtMs >= atMs,
  )
}
