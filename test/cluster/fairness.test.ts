/** A webhook that is down does not affect those of other bots (protocol.md §8). The bench case `fairness` measures delays. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { test, type TestContext } from 'node:test'
import { type RegisteredBot, type Server, startServer } from '../support/server/server.ts'
import { type Delivery, startSink } from '../support/webhook/webhook-sink.ts'
import { portOf } from '../support/kit/port.ts'
import { until } from '../support/kit/until.ts'

const healthyBots = 50
const healthyKeys = 2
const healthyUpdates = 20
const sickUpdates = 3_000
const sickKeys = 100
/** The most connections while no delivery succeeds, and the time between their openings (protocol.md §8). */
const slowConnectionsMax = 4
const slowOpeningMs = 2_000
const waitMsMax = 30_000

/** An endpoint that accepts requests and does not respond until it recovers. */
async function startHangingEndpoint(t: TestContext) {
  const sockets = new Set<Socket>()
  const held: ServerResponse[] = []
  const names: string[] = []
  const endpoint = { names, connectionsMax: 0, url: '', recover }
  let isHanging = true
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      names.push(JSON.parse(Buffer.concat(chunks).toString()).message.name)
      if (isHanging) held.push(response)
      else response.end()
    })
  })
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
    if (isHanging) endpoint.connectionsMax = Math.max(endpoint.connectionsMax, sockets.size)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  endpoint.url = `http://127.0.0.1:${portOf(server)}/`
  function recover(): void {
    isHanging = false
    for (const response of held) response.end()
  }
  return endpoint
}

async function hookedBot(server: Server, url: string): Promise<RegisteredBot> {
  const bot = await server.register()
  const { text, body } = await server.call(bot.token, 'setWebhook', { url, max_connections: 40 })
  assert.equal(body.description, 'Webhook was set', text)
  return bot
}

/** Names are KEY:N, where N counts up within the key. */
function namesOf(keys: number, updates: number): string[] {
  return Array.from({ length: updates }, (_, at) => `${at % keys}:${Math.floor(at / keys)}`)
}

async function pushAll(server: Server, bots: readonly RegisteredBot[], names: readonly string[]) {
  const pairs = names.flatMap((name) =>
    bots.map(({ botId }) => {
      const header = { bot_id: botId, ordering_key: name.split(':')[0] }
      return `${JSON.stringify(header)}\n${JSON.stringify({ message: { name } })}\n`
    }),
  )
  const { text } = await server.admin('POST', '/v1/updates', pairs.join(''))
  const refused = text.split('\n').filter((line) => !/^(?:\{"update_id":\d+\})?$/.test(line))
  assert.deepEqual(refused, [])
}

/** Checks by bot and key that each update arrived exactly once and in order. */
function assertInOrder(received: readonly string[], pushed: readonly string[]): void {
  assert.equal(received.length, pushed.length)
  const keys = new Set(pushed.map((name) => name.split(':')[0]))
  for (const key of keys) {
    const ofKey = (name: string): boolean => name.startsWith(`${key}:`)
    assert.deepEqual(received.filter(ofKey), pushed.filter(ofKey))
  }
}

function namesAt(deliveries: readonly Delivery[], path: string): string[] {
  return deliveries
    .filter((delivery) => delivery.path === path)
    .map(({ update }) => String(update.message?.['name']))
}

test('an endpoint that hangs gets at most four connections, and other bots get every update', async (t) => {
  const server = await startServer(t, { workers: 2, flags: ['--local'] })
  const sink = await startSink(t)
  const endpoint = await startHangingEndpoint(t)
  const sick = await hookedBot(server, endpoint.url)
  const sickNames = namesOf(sickKeys, sickUpdates)
  await pushAll(server, [sick], sickNames)
  await until(() => endpoint.names.length === 1)

  const healthy: RegisteredBot[] = []
  for (let index = 0; index < healthyBots; index++) {
    healthy.push(await hookedBot(server, sink.url(`/${index}`)))
  }
  const names = namesOf(healthyKeys, healthyUpdates)
  await pushAll(server, healthy, names)
  await sink.atLeast(healthyBots * names.length)

  // Once more, when the endpoint has all the deliveries that it can get.
  await until(() => endpoint.names.length === slowConnectionsMax, waitMsMax)
  await pushAll(server, healthy, names)
  await sink.atLeast(2 * healthyBots * names.length)
  for (let index = 0; index < healthyBots; index++) {
    const received = namesAt(sink.deliveries, `/${index}`)
    assertInOrder(received.slice(0, names.length), names)
    assertInOrder(received.slice(names.length), names)
  }

  // Time for a fifth connection, if the server opened one.
  await new Promise((resolve) => setTimeout(resolve, slowOpeningMs + 200))
  assert.equal(endpoint.connectionsMax, slowConnectionsMax)
  assert.deepEqual(endpoint.names.toSorted(), ['0:0', '1:0', '2:0', '3:0'])
  const { body } = await server.call(sick.token, 'getWebhookInfo')
  assert.equal(body.result.pending_update_count, sickUpdates)

  endpoint.recover()
  await until(() => endpoint.names.length === sickUpdates, waitMsMax)
  assertInOrder(endpoint.names, sickNames)
})
