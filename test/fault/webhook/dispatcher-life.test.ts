import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { test } from 'node:test'
import { FakeClock } from '../../support/kit/fake-clock.ts'
import { QueueLife } from '../../support/queue/queue-life.ts'
import {
  endpoint,
  idOf,
  ok,
  rawEndpoint,
  stopAfter,
} from '../../support/webhook/webhook-endpoints.ts'
import { loopbackNetwork, setUpWebhook } from '../../support/webhook/webhook-setup.ts'
import { until } from '../../support/kit/until.ts'

test('a stop aborts deliveries in flight, whose updates stay pending, and leaves no socket and no timer', async (context) => {
  const { url, sockets } = await rawEndpoint(context, () => undefined, Number.POSITIVE_INFINITY)
  const clock = new FakeClock()
  const setup = setUpWebhook({ url }, { clock })
  for (let id = 1; id <= 5; id++) setup.source.push({ updateId: id, orderingKey: `key ${id}` })
  setup.dispatcher.start(0)
  await until(() => sockets.size === 1)
  await setup.dispatcher.close()
  assert.equal(setup.gate.open, 0)
  assert.equal(clock.timers, 0)
  await until(() => sockets.size === 0)
  setup.dispatcher.wake()
  assert.equal(setup.source.updates.length, 5)
  assert.equal(setup.source.removeCalls, 0)
})

test('an idle connection that the endpoint has closed is released, and a stop does not wait for it', async (context) => {
  const { url, server } = await endpoint(context, ok)
  const setup = stopAfter(context, setUpWebhook({ url }))
  setup.source.push({ updateId: 1 })
  setup.dispatcher.start(0)
  await setup.source.empty()
  await until(() => setup.gate.open === 1)
  server.closeIdleConnections()
  await until(() => setup.gate.open === 0)
  await setup.dispatcher.close()
})

test('a stop while a connection is being opened leaves nothing', async () => {
  let isOpening = false
  const setup = setUpWebhook(
    { url: 'http://bot.example/' },
    {
      network: {
        ...loopbackNetwork,
        connect: ({ signal }) =>
          new Promise((_resolve, reject) => {
            signal.addEventListener('abort', () => reject(signal.reason))
            isOpening = true
          }),
      },
    },
  )
  setup.source.push({ updateId: 1 })
  setup.dispatcher.start(0)
  await until(() => isOpening)
  await setup.dispatcher.close()
  assert.equal(setup.gate.open, 0)
  assert.equal(setup.attempts.lastError, undefined)
})

test('a drain lets the delivery in flight finish and sends nothing new', async (context) => {
  const { url, received } = await endpoint(context, (response, _received, index) => {
    if (index > 0) return
    drained = setup.dispatcher.drain(10_000)
    setImmediate(() => response.end())
  })
  let drained: Promise<void> | undefined
  const setup = stopAfter(context, setUpWebhook({ url }))
  setup.source.push({ updateId: 1 }, { updateId: 2 }, { updateId: 3, orderingKey: 'other' })
  setup.dispatcher.start(0)
  await until(() => drained !== undefined)
  await drained
  assert.deepEqual(setup.source.removed, [{ updateId: 1, reason: 'delivered' }])
  assert.equal(received.length, 1)
})

test('a connection that opens during a drain sends nothing', async (context) => {
  const { url, received } = await endpoint(context, (response) => void waiting.push(response))
  const waiting: ServerResponse[] = []
  const clock = new FakeClock()
  let letThrough: (() => void) | undefined
  const setup = stopAfter(
    context,
    setUpWebhook(
      { url },
      {
        clock,
        network: {
          ...loopbackNetwork,
          connect: async (request) => {
            if (waiting.length > 0) {
              await new Promise<void>((resolve) => {
                letThrough = resolve
              })
            }
            return loopbackNetwork.connect(request)
          },
        },
      },
    ),
  )
  setup.source.push({ updateId: 1, orderingKey: 'a' }, { updateId: 2, orderingKey: 'b' })
  setup.dispatcher.start(0)
  await until(() => waiting.length === 1)
  await clock.advance(2_000)
  await until(() => letThrough !== undefined)
  const drained = setup.dispatcher.drain(10_000)
  letThrough?.()
  await until(() => setup.gate.open === 1)
  waiting[0]?.end()
  await drained
  assert.equal(received.length, 1)
  assert.deepEqual(
    setup.source.updates.map((one) => one.updateId),
    [2],
  )
})

test('connections to an address that the name no longer has are closed, and the new address is used', async (context) => {
  const { url, received } = await endpoint(context, ok)
  const clock = new FakeClock()
  let address = '127.0.0.1'
  const connected: string[] = []
  const setup = stopAfter(
    context,
    setUpWebhook(
      { url: url.replace('127.0.0.1', 'bot.example') },
      {
        clock,
        network: {
          lookup: async () => [address],
          judge: async (list) => list.map(() => true),
          connect: (request) => {
            connected.push(request.address)
            return loopbackNetwork.connect({ ...request, address: '127.0.0.1' })
          },
        },
      },
    ),
  )
  setup.source.push({ updateId: 1 })
  setup.dispatcher.start(0)
  await setup.source.empty()
  address = '127.0.0.2'
  await clock.advance(40 * 60_000)
  setup.source.push({ updateId: 2 })
  setup.dispatcher.wake()
  await setup.source.empty()
  await until(() => setup.gate.open === 0)
  setup.source.push({ updateId: 3 })
  setup.dispatcher.wake()
  await setup.source.empty()
  assert.deepEqual(connected, ['127.0.0.1', '127.0.0.2'])
  assert.equal(received[0]?.request.headers.host, `bot.example:${new URL(url).port}`)
})

test('if all places are taken, a busy webhook gives one up for a webhook that has none', async (context) => {
  const clock = new FakeClock()
  let held: ServerResponse | undefined
  const { url, received } = await endpoint(context, (response, _received, index) => {
    if (index > 0) response.end()
    else held = response
  })
  const busy = stopAfter(context, setUpWebhook({ url }, { clock }))
  busy.gate.openMax = 1
  const other = setUpWebhook({ url }, { clock, serverGate: busy.gate })
  context.after(() => other.dispatcher.close())
  for (let updateId = 1; updateId <= 3; updateId++) {
    busy.source.push({ updateId, orderingKey: `k${updateId}` })
  }
  busy.dispatcher.start(0)
  await until(() => received.length === 1)
  other.source.push({ updateId: 100 })
  other.dispatcher.start(0)
  await clock.advance(1_100)
  held?.end()
  await until(() => busy.gate.open === 0)
  await clock.advance(500)
  await until(() => other.source.updates.length === 0 && busy.gate.open === 0)
  assert.deepEqual(received.map(idOf), [1, 100], 'the one that gave way waits')
  await clock.advance(500)
  await until(() => busy.source.updates.length === 0)
  assert.deepEqual(received.map(idOf), [1, 100, 2, 3])
})

test('after a new numbering of the queue the lower ids are delivered over the same connection', async (context) => {
  const { url, received } = await endpoint(context, ok)
  const chances = [0.9]
  const life = await QueueLife.open({ random: () => chances.shift() ?? 0 })
  const { queue } = life
  const setup = stopAfter(context, setUpWebhook({ url }, { source: queue }))
  setup.dispatcher.start(0)
  const [before] = await life.push(1)
  setup.dispatcher.wake()
  await until(() => queue.pendingCount === 0)
  await life.wait(queue.renumber())
  const [after] = await life.push(1)
  setup.dispatcher.wake()
  await until(() => queue.pendingCount === 0)
  assert.deepEqual(received.map(idOf), [before, after])
  assert.ok(Number(after) < Number(before))
  assert.equal(setup.gate.open, 1)
})

test('without a lease no delivery starts, not even on a connection that opens meanwhile, and all are sent afterward', async (context) => {
  const { url, received } = await endpoint(context, ok)
  const lease = { isValid: () => isValid }
  let isValid = false
  const network = {
    ...loopbackNetwork,
    async connect(options: Parameters<typeof loopbackNetwork.connect>[0]) {
      const socket = await loopbackNetwork.connect(options)
      isValid = false
      opened += 1
      return socket
    },
  }
  let opened = 0
  const setup = stopAfter(context, setUpWebhook({ url }, { lease, network }))
  setup.source.push({ updateId: 1 })
  setup.dispatcher.start(0)
  await new Promise((resolve) => setTimeout(resolve, 100))
  assert.equal(opened, 0)
  isValid = true
  await until(() => opened === 1)
  await new Promise((resolve) => setTimeout(resolve, 100))
  assert.equal(received.length, 0)
  isValid = true
  await setup.source.empty()
  assert.deepEqual(received.map(idOf), [1])
  assert.equal(setup.attempts.lastError, undefined)
})

test('a delivery that was about to be written when the lease ended is not written', async (context) => {
  const { url, received } = await endpoint(context, ok)
  let [isValid, isLast] = [true, false]
  const lease = {
    isValid() {
      const wasValid = isValid
      if (isLast) isValid = false
      return wasValid
    },
  }
  const setup = stopAfter(context, setUpWebhook({ url }, { lease }))
  setup.source.push({ updateId: 1 })
  setup.dispatcher.start(0)
  await setup.source.empty()
  isLast = true
  setup.source.push({ updateId: 2 })
  setup.dispatcher.wake()
  await new Promise((resolve) => setTimeout(resolve, 100))
  assert.deepEqual(received.map(idOf), [1])
  ;[isValid, isLast] = [true, false]
  await setup.source.empty()
  assert.deepEqual(received.map(idOf), [1, 2])
  assert.equal(setup.attempts.lastError, undefined)
})
