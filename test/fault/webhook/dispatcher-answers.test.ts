/** Tests how a dispatcher takes answers that are framed badly, or do not come at all. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { test, type TestContext } from 'node:test'
import { FakeClock } from '../../support/kit/fake-clock.ts'
import { portOf } from '../../support/kit/port.ts'
import { until } from '../../support/kit/until.ts'
import { readRequests } from '../../support/producers/raw-requests.ts'
import { stopAfter } from '../../support/webhook/webhook-endpoints.ts'
import { setUpWebhook } from '../../support/webhook/webhook-setup.ts'

/** Serves raw connections: `serve` is called for each request with the number that it has on its connection, from 1 on. */
async function perConnection(
  context: TestContext,
  serve: (socket: Socket, nth: number, text: string) => void,
): Promise<string> {
  const server = createServer((socket) => {
    let nth = 0
    context.after(() => socket.destroy())
    socket.on('error', () => undefined)
    readRequests(socket, (text) => serve(socket, ++nth, text))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  context.after(() => server.close())
  return `http://127.0.0.1:${portOf(server)}/`
}

const noContent = 'HTTP/1.1 204 No Content\r\n\r\n'

for (const end of ['end', 'resetAndDestroy'] as const) {
  test(`a delivery on a kept connection that the endpoint ends instead of an answer is repeated at once, and is no attempt: ${end}`, async (context) => {
    let requests = 0
    const url = await perConnection(context, (socket, nth) => {
      requests++
      if (nth === 1) socket.write(noContent)
      else socket[end]()
    })
    const setup = stopAfter(context, setUpWebhook({ url }))
    for (let updateId = 1; updateId <= 5; updateId++) setup.source.push({ updateId })
    setup.dispatcher.start(0)
    await setup.source.empty()
    assert.equal(requests, 9)
    assert.deepEqual(
      setup.attempts.latest().map(({ updateId, status }) => [updateId, status]),
      [5, 4, 3, 2, 1].map((updateId) => [updateId, 204]),
    )
    assert.equal(setup.attempts.lastError, undefined)
  })
}

test('an endpoint that ends every connection at its first request fails', async (context) => {
  const url = await perConnection(context, (socket) => void socket.end())
  const setup = stopAfter(context, setUpWebhook({ url }))
  setup.source.push({ updateId: 1 })
  setup.dispatcher.start(0)
  await until(() => setup.attempts.failuresInRow === 2)
})

test('an update at which the endpoint ends every connection fails at the second one', async (context) => {
  let poisoned = 0
  const url = await perConnection(context, (socket, _nth, text) => {
    if (!text.includes('"update_id":3,')) {
      socket.write(noContent)
      return
    }
    poisoned++
    socket.end()
  })
  const setup = stopAfter(context, setUpWebhook({ url }, { clock: new FakeClock() }))
  for (let updateId = 1; updateId <= 3; updateId++) setup.source.push({ updateId })
  setup.dispatcher.start(0)
  await until(() => setup.attempts.failuresInRow === 2)
  assert.equal(poisoned, 3, 'one of them was on a kept connection')
})

test('a kept connection that ends within its answer is a failure', async (context) => {
  const url = await perConnection(context, (socket, nth) => {
    if (nth === 1) socket.write(noContent)
    else socket.end('HTTP/1.1')
  })
  const setup = stopAfter(context, setUpWebhook({ url }))
  for (let updateId = 1; updateId <= 2; updateId++) setup.source.push({ updateId })
  setup.dispatcher.start(0)
  await setup.source.empty()
  assert.equal(setup.attempts.latest().length, 3)
})
