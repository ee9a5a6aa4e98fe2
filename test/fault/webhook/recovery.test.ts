/**
 * An endpoint that falls over: when it gets more requests in a second than it can take, it responds with 503 for two
 * seconds. It has a large backlog of updates, over real sockets.
 */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { systemClock } from '../../../src/kit/clock.ts'
import { Connection } from '../../../src/delivery/endpoint/connection.ts'
import { DeliveryPace } from '../../../src/delivery/pace/delivery-pace.ts'
import type { DispatcherOptions } from '../../../src/delivery/dispatcher.ts'
import { EndpointPace } from '../../../src/delivery/pace/endpoint-pace.ts'
import { DeliveryState } from '../../../src/delivery/state.ts'
import { until } from '../../support/kit/until.ts'
import { endpoint, stopAfter } from '../../support/webhook/webhook-endpoints.ts'
import { setUpWebhook, type WebhookSetup } from '../../support/webhook/webhook-setup.ts'

const takenPerSecond = 150
/** So that the requests of the first half second, before any pace, are not as many as this machine can send. */
const respondsAfterMs = 15
const downMs = 2_000
const backlog = 1_000

interface WeakEndpoint extends WebhookSetup {
  readonly counts: { falls: number; requests: number }
}

/** Starts deliveries to an endpoint that falls over above `takenPerSecond`. */
async function weakEndpoint(
  context: TestContext,
  options: Partial<DispatcherOptions> = {},
): Promise<WeakEndpoint> {
  const counts = { falls: 0, requests: 0 }
  let downToMs = 0
  let takenMs: number[] = []
  const { url } = await endpoint(context, (response) => {
    const nowMs = systemClock.monotonicMs()
    counts.requests++
    takenMs = takenMs.filter((atMs) => nowMs - atMs < 1_000)
    const isUp = nowMs >= downToMs
    const isTaken = isUp && takenMs.length < takenPerSecond
    if (isTaken) takenMs.push(nowMs)
    else if (isUp) {
      counts.falls++
      downToMs = nowMs + downMs
    }
    setTimeout(() => response.writeHead(isTaken ? 200 : 503).end(), respondsAfterMs)
  })
  const setup = stopAfter(context, setUpWebhook({ url }, options))
  for (let updateId = 1; updateId <= backlog; updateId++) {
    setup.source.push({ updateId, orderingKey: `key ${updateId}` })
  }
  setup.dispatcher.start(0)
  return Object.assign(setup, { counts })
}

/** Always open. */
class OpenPace extends EndpointPace {
  override failed(): void {}
}

test('an endpoint that falls over takes its backlog with few falls, and without a pace it would not', async (context) => {
  const paced = await weakEndpoint(context)
  const other = await weakEndpoint(context, {
    parts: {
      createState: (options) => new DeliveryState(options),
      createConnection: (options) => new Connection(options),
      createPace: (limit) => new DeliveryPace(limit, new OpenPace()),
    },
  })
  await paced.source.empty()
  const { falls, requests } = paced.counts
  const left = other.source.updates.length
  context.diagnostic(`${falls} falls, ${requests} requests`)
  context.diagnostic(`without: ${other.counts.falls} falls, ${other.counts.requests}, ${left} left`)
  assert(falls <= 5, `${falls} falls`)
  assert(requests < backlog * 2, `${requests} requests`)
  assert(other.counts.falls > falls, `only ${other.counts.falls} falls`)
  assert(left > 0, 'it is not even slower')
})

test('keys that do not fail are delivered among 20,000 keys that do', async (context) => {
  const { url, received } = await endpoint(context, (response, { body }) => {
    response.writeHead(body.includes('failing') ? 403 : 200).end()
  })
  const setup = setUpWebhook({ url, maxConnections: 10 }, { random: Math.random })
  const { source, dispatcher } = stopAfter(context, setup)
  source.isSlow = true
  for (let updateId = 1; updateId <= 20_000; updateId++) {
    source.push({ updateId, orderingKey: `failing ${updateId}` })
  }
  dispatcher.start(0)
  await until(() => dispatcher.waiting().endpointPerSecond === 10)
  const before = received.length
  for (let nth = 1; nth <= 200; nth++) {
    source.push({ updateId: 20_000 + nth, orderingKey: `other ${nth % 20}` })
  }
  dispatcher.wake()
  await until(() => source.removed.length === 200)
  const attempts = received.length - before
  context.diagnostic(`${attempts} attempts`)
  assert(attempts < 1_000, `${attempts} attempts`)
})
