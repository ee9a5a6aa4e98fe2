import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { test, type TestContext } from 'node:test'
import { portOf, setUpWebhook, type WebhookSetup } from '../../support/webhook-setup.ts'

interface Received {
  readonly request: IncomingMessage
  readonly body: string
}

type Answer = (response: ServerResponse, received: Received, index: number) => void

async function endpoint(
  context: TestContext,
  answer: Answer,
): Promise<{ readonly url: string; readonly received: Received[]; readonly server: Server }> {
  const received: Received[] = []
  const server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8')
    request.on('data', (chunk: string) => {
      body += chunk
    })
    request.on('end', () => {
      const one = { request, body }
      answer(response, one, received.push(one) - 1)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  context.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${portOf(server)}/hook?x=1`, received, server }
}

function stopAfter(context: TestContext, setup: WebhookSetup): WebhookSetup {
  context.after(async () => {
    await setup.dispatcher.stop()
    assert.equal(setup.gate.open, 0, 'every connection is given back to the server-wide gate')
  })
  return setup
}

function idOf(one: Received): number {
  return Number(/^\{"update_id":(\d+),/.exec(one.body)?.[1])
}

const ok: Answer = (response) => void response.end()

test('an update is posted byte for byte with exact headers, and removed', async (context) => {
  const { url, received } = await endpoint(context, ok)
  const authorized = url.replace('http://', 'http://user:p%40ss@')
  const setup = stopAfter(context, setUpWebhook({ url: authorized, secretToken: 'se-cret' }))
  setup.source.push({ updateId: 7 })
  setup.dispatcher.start(0)
  await setup.source.empty()
  assert.equal(received.length, 1)
  const { request, body } = received[0]!
  assert.equal(request.method, 'POST')
  assert.equal(request.url, '/hook?x=1')
  assert.equal(body, '{"update_id":7,"message":{"text":"key"}}')
  assert.deepEqual(request.headers, {
    host: new URL(url).host,
    connection: 'keep-alive',
    'content-type': 'application/json',
    'content-length': String(body.length),
    authorization: `Basic ${Buffer.from('user:p@ss').toString('base64')}`,
    'x-service-bot-api-secret-token': 'se-cret',
    'x-telegram-bot-api-secret-token': 'se-cret',
  })
  assert.deepEqual(setup.source.removed, [{ updateId: 7, reason: 'delivered' }])
  assert.equal(setup.dispatcher.info().ipAddress, '127.0.0.1')
})

test('updates of one key go out one after the other on one kept-alive connection', async (context) => {
  const { url, received } = await endpoint(context, ok)
  const setup = stopAfter(context, setUpWebhook({ url }))
  for (let updateId = 1; updateId <= 200; updateId++) setup.source.push({ updateId })
  setup.dispatcher.start(0)
  await setup.source.empty()
  assert.deepEqual(
    received.map(idOf),
    Array.from({ length: 200 }, (_value, index) => index + 1),
  )
  assert.equal(new Set(received.map((one) => one.request.socket.remotePort)).size, 1)
})
