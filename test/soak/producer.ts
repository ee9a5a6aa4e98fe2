/**
 * The producer of a soak run. Its lanes push concurrently, each in a different way:
 *
 *   plain     single pushes without a key, each sent once: without a response its outcome stays unknown
 *   keyed     single pushes with a key, sent until they are acknowledged, and sometimes once more
 *   stream    NDJSON streams of pairs with keys; pairs without a result of a broken stream go first in the next one
 *   hinted    the same on a stream to each worker, and stale, where most of the hints are wrong
 */
import {
  freshHints,
  type Hints,
  noHints,
  PushStreams,
  staleHints,
} from '../support/producers/push-streams.ts'
import type { PairResult } from '../support/producers/raw-push-stream.ts'
import type { Luck } from '../support/simulation/luck.ts'
import { nowMs, type Pushing } from './ledger.ts'
import { namedUpdate, updateName } from './named-update.ts'
import { HttpCaller, pause, SoakProcess } from './soak-process.ts'

/** Errors that promise that nothing was stored. */
const definiteCodes = new Set(['STORE_UNAVAILABLE', 'SHARD_BROKEN', 'QUEUE_FULL', 'DISK_LOW'])
const orderingKeys = ['a', 'b', 'c', 'd']
const outstandingPairsMax = 10
const laneCount = 7

const soak = new SoakProcess()
const { task, ledger } = soak
const headers = { authorization: `Bearer ${task.key}` }
/** The pause that gives each lane its share of the rate, if the server responded immediately. */
const pauseMs = (laneCount * 1_000) / task.rate

/**
 * Only updates of webhooks expire: expired updates of a polling bot count as pending until the next sweep, a minute
 * later.
 */
const webhookBots = new Set(task.webhookBots.map(({ botId }) => botId))

class Lane {
  readonly name: string
  readonly luck: Luck
  readonly #bots: readonly number[]
  readonly #isKeyed: boolean
  readonly #isOrdered: boolean
  #count = 0

  constructor(name: string, { isKeyed, isOrdered }: { isKeyed: boolean; isOrdered: boolean }) {
    this.name = name
    this.luck = soak.luck(name)
    this.#isKeyed = isKeyed
    this.#isOrdered = isOrdered
    // Every id of a dropping bot must be known: without a response, its id could not be assigned to an update.
    this.#bots = [...task.pollingBots, ...task.webhookBots]
      .filter(({ isDropping }) => isKeyed || !isDropping)
      .map(({ botId }) => botId)
  }

  next(): Pushing {
    const { luck } = this
    const bot = luck.pick(this.#bots)
    const size = luck.chance(0.01) ? luck.int(50_000, 300_000) : luck.skewed(12_000)
    const push: Pushing = {
      kind: 'push',
      name: updateName(this.name, this.#count++, size),
      bot,
      orderingKey: luck.pick(orderingKeys),
      isKeyed: this.#isKeyed,
      ...(this.#isKeyed && webhookBots.has(bot) && luck.chance(0.05)
        ? { ttlS: luck.int(1, 3) }
        : {}),
      ...(this.#isOrdered ? { line: `${this.name} ${bot}` } : {}),
      atMs: nowMs(),
    }
    ledger.add(push)
    return push
  }
}

type Outcome = 'acked' | 'refused' | 'unknown'

async function pushOnce(caller: HttpCaller, push: Pushing): Promise<Outcome> {
  const { name, bot, orderingKey, ttlS, isKeyed } = push
  const query = `ordering_key=${orderingKey}${ttlS === undefined ? '' : `&ttl=${ttlS}`}`
  const url = `${task.privateUrl}/v1/bots/${bot}/updates?${query}`
  const update = namedUpdate(name, orderingKey)
  const key = isKeyed ? { 'idempotency-key': name } : undefined
  try {
    const { body } = await caller.post(url, update, { ...headers, ...key })
    return settle(name, body)
  } catch (error) {
    const isNeverSent = error instanceof Error && 'code' in error && error.code === 'ECONNREFUSED'
    if (isNeverSent) ledger.add({ kind: 'refused', name, code: 'ECONNREFUSED', atMs: nowMs() })
    else ledger.add({ kind: 'unknown', name, why: String(error), atMs: nowMs() })
    return isNeverSent ? 'refused' : 'unknown'
  }
}

interface PushAnswer {
  readonly update_id?: number
  readonly error?: { readonly code: string }
}

function settle(name: string, answer: PushAnswer | undefined): Outcome {
  const atMs = nowMs()
  if (answer?.update_id !== undefined) {
    ledger.add({ kind: 'acked', name, id: answer.update_id, atMs })
    return 'acked'
  }
  const code = answer?.error?.code ?? 'the stream broke'
  if (definiteCodes.has(code)) {
    ledger.add({ kind: 'refused', name, code, atMs })
    return 'refused'
  }
  ledger.add({ kind: 'unknown', name, why: code, atMs })
  return 'unknown'
}

async function pushPlain(lane: Lane): Promise<void> {
  const caller = new HttpCaller()
  while (!soak.isStopping) {
    const outcome = await pushOnce(caller, lane.next())
    await pause(outcome === 'acked' ? pauseMs : pauseMs + 50)
  }
}

async function pushKeyed(lane: Lane): Promise<void> {
  const caller = new HttpCaller()
  while (!soak.isStopping) {
    const push = lane.next()
    while ((await pushOnce(caller, push)) !== 'acked') await pause(100)
    if (lane.luck.chance(0.05)) await pushOnce(caller, push)
    await pause(pauseMs)
  }
}

async function pushStreams(lane: Lane, hints: Hints): Promise<void> {
  let waiting: Pushing[] = []
  while (!soak.isStopping || waiting.length > 0) {
    const streams = new PushStreams(task, await hints(task))
    for (const { response } of streams.all) response.catch(() => undefined)
    const again: Pushing[] = []
    const open = new Set<Promise<unknown>>()
    const send = (push: Pushing): void => {
      const { name, bot, orderingKey, ttlS } = push
      const head = {
        bot_id: bot,
        ordering_key: orderingKey,
        idempotency_key: name,
        ...(ttlS === undefined ? {} : { ttl: ttlS }),
      }
      const settled = settlePair(streams.of(bot).push(head, namedUpdate(name, orderingKey)), push)
      const over: Promise<unknown> = settled.then((isAcked) => {
        if (!isAcked) again.push(push)
        return open.delete(over)
      })
      open.add(over)
    }
    for (const push of waiting) send(push)
    for (let left = lane.luck.int(20, 200); left > 0 && again.length === 0; left--) {
      if (soak.isStopping) break
      send(lane.next())
      await pause(pauseMs)
      while (open.size >= outstandingPairsMax) await Promise.race(open)
    }
    await Promise.race([streams.end(), pause(20_000)])
    streams.destroy()
    await Promise.all(open)
    waiting = again
    if (waiting.length > 0) await pause(100)
  }
}

async function settlePair(
  result: Promise<PairResult | undefined>,
  push: Pushing,
): Promise<boolean> {
  return settle(push.name, await result) === 'acked'
}

await soak.run([
  ...['plain1', 'plain2'].map((name) =>
    pushPlain(new Lane(name, { isKeyed: false, isOrdered: true })),
  ),
  ...['keyed1', 'keyed2'].map((name) =>
    pushKeyed(new Lane(name, { isKeyed: true, isOrdered: true })),
  ),
  ...(
    [
      ['stream', noHints],
      ['hinted', freshHints],
      ['stale', staleHints()],
    ] as const
  ).map(([name, hints]) => pushStreams(new Lane(name, { isKeyed: true, isOrdered: false }), hints)),
])
