/**
 * Connections that have sent a request and fill a server with few descriptors: a connection of each kind gives way to a
 * new one that needs a place.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { test } from 'node:test'
import { botOf } from '../support/server/bot-of.ts'
import { KeyUser } from '../support/server/key-user.ts'
import { RawPushStream } from '../support/producers/raw-push-stream.ts'
import { type RegisteredBot, send, type Server, startServer } from '../support/server/server.ts'
import { until } from '../support/kit/until.ts'

/** With this limit a worker accepts 64 connections, and the primary 128. */
const descriptorsMax = 256
/** Connections per wave; there is one wave for each worker. */
const connectionsOfWave = 60
const waves = 2

interface Kind {
  readonly name: string
  /** The first bytes of a connection for the worker of this bot. */
  readonly bytes: (bot: RegisteredBot) => string
  readonly listener?: 'private'
  /** Whether the server sends a response to these bytes, for which the test waits. */
  readonly isAnswered?: boolean
}

const head = ' HTTP/1.1\r\nHost: 127.0.0.1\r\n'

const kinds: readonly Kind[] = [
  {
    name: 'idle keep-alive connections',
    bytes: ({ token }) => `GET /bot${token}/getMe${head}\r\n`,
    isAnswered: true,
  },
  {
    name: 'heads without their bodies',
    bytes: ({ token }) => `POST /bot${token}/getMe${head}Content-Length: 9\r\n\r\n{`,
  },
  {
    name: 'refusals that are held',
    bytes: ({ botId }) => `GET /bot${botId}:${'x'.repeat(35)}/getMe${head}\r\n`,
  },
  {
    name: 'refusals that are held, with the next request after them',
    bytes: ({ botId }) => {
      const refused = `GET /bot${botId}:${'x'.repeat(35)}/getMe${head}\r\n`
      return `GET /nowhere${head}\r\n${refused}GET /nowhere${head}\r\n`
    },
  },
  {
    name: 'idle connections of the private listener',
    bytes: () => `GET /healthz${head}\r\n`,
    listener: 'private',
    isAnswered: true,
  },
  {
    name: 'streams of updates without the key',
    bytes: () => `POST /v1/updates${head}Transfer-Encoding: chunked\r\n\r\n`,
    listener: 'private',
    isAnswered: true,
  },
]

for (const spread of ['one address', 'many addresses'] as const) {
  test(`when ${spread} fill the server, health checks, pushes and polls succeed`, async (t) => {
    const server = await startServer(t, { workers: 2, descriptorsMax })
    const bots = [await server.register(botOf(0)), await server.register(botOf(1))]
    for (const kind of spread === 'one address' ? kinds : kinds.slice(0, 3)) {
      const crowd = new Set<Socket>()
      t.after(() => closeAll(crowd))
      for (let wave = 0; wave < waves; wave++) {
        for (const bot of bots) {
          const opening = Array.from({ length: connectionsOfWave }, (_, nth) =>
            open(server, kind, {
              bot,
              address: spread === 'one address' ? '127.0.0.2' : `127.0.1.${nth + 1}`,
            }),
          )
          for (const socket of opening) crowd.add(socket)
          await Promise.all(opening.map((socket) => settled(socket, kind)))
        }
        await t.test(`${kind.name}, wave ${wave + 1}`, () => assertServed(server, bots))
      }
      assert.ok(
        [...crowd].some(({ destroyed }) => destroyed),
        `none gave way: ${kind.name}`,
      )
      await closeAll(crowd)
    }
    assert.doesNotMatch(server.output(), /no free file descriptors/)
  })
}

test('one address that fills the server closes neither idle connections of others nor a waiting poll', async (t) => {
  const server = await startServer(t, { workers: 2, descriptorsMax })
  const bots = [await server.register(botOf(0)), await server.register(botOf(1))]
  const [bot = { botId: 0, token: '' }] = bots
  const waiting = server.call(bot.token, 'getUpdates', { timeout: 50 })
  const idle = await Promise.all(
    Array.from({ length: 6 }, async (_, nth) => {
      const agent = new Agent({
        keepAlive: true,
        maxSockets: 1,
        localAddress: `127.0.0.${nth + 10}`,
      })
      t.after(() => agent.destroy())
      return { agent, port: await portOfCall(server, bots[nth % 2]?.token, agent) }
    }),
  )
  for (const kind of kinds.filter(({ listener }) => listener === undefined)) {
    const crowd = new Set<Socket>()
    t.after(() => closeAll(crowd))
    for (let wave = 0; wave < waves; wave++) {
      for (const to of bots) {
        const opening = Array.from({ length: connectionsOfWave }, () =>
          open(server, kind, { bot: to, address: '127.0.0.2' }),
        )
        for (const socket of opening) crowd.add(socket)
        await Promise.all(opening.map((socket) => settled(socket, kind)))
      }
    }
    for (const [nth, { agent, port }] of idle.entries()) {
      assert.equal(await portOfCall(server, bots[nth % 2]?.token, agent), port, kind.name)
    }
    await closeAll(crowd)
  }
  await server.push(bot.botId, { message: { text: 'hello' } })
  assert.match((await waiting).text, /"text":"hello"/)
})

test('idle streams of one key leave bots, health checks, other keys and the call that revokes it their places', async (t) => {
  const server = await startServer(t, { workers: 1, descriptorsMax })
  const bot = await server.register(botOf(0))
  const evil = await KeyUser.make(server, { name: 'evil', scopes: ['push'], bots: [bot.botId] })
  const other = await KeyUser.make(server, { name: 'other', scopes: ['push'] })
  const streams: RawPushStream[] = []
  const openSome = async (count: number): Promise<void> => {
    const opened = Array.from({ length: count }, () => new RawPushStream(evil))
    streams.push(...opened)
    await Promise.all(opened.map((stream) => stream.response))
  }
  t.after(() => {
    for (const stream of streams) stream.destroy()
  })
  // Those that are opened together arrive in any order.
  for (const count of [1, 2 * connectionsOfWave, 1]) await openSome(count)
  const result = await streams.at(-1)?.push({ bot_id: bot.botId }, { message: { text: 'hello' } })
  assert.ok(result?.update_id !== undefined)
  await assertServed(server, [bot])
  assert.equal(await other.push(bot.botId), '200')
  // The oldest stream has given way, and its producer sees that it ended by HTTP.
  assert.equal(await streams[0]?.ended, true)
  assert.equal((await server.admin('DELETE', `/v1/keys/${evil.keyId}`)).status, 200)
  assert.equal(await streams.at(-1)?.ended, true)
})

/** Checks that a new bot, a producer and a load balancer get their responses soon. */
async function assertServed(server: Server, bots: readonly RegisteredBot[]): Promise<void> {
  const health = await send({ method: 'GET', url: `${server.privateUrl}/healthz` })
  assert.equal(health.status, 200, health.text)
  for (const { botId, token } of bots) {
    const updateId = await server.push(botId, { message: { text: 'hello' } })
    assert.ok(updateId !== undefined)
    const { status, text, body } = await server.call(token, 'getUpdates', { timeout: 50 })
    assert.equal(status, 200, text)
    assert.equal(body.result.at(-1).update_id, updateId)
    await server.call(token, 'getUpdates', { offset: updateId + 1 })
  }
}

function open(
  server: Server,
  { bytes, listener }: Kind,
  { bot, address }: { readonly bot: RegisteredBot; readonly address: string },
): Socket {
  const { port } = new URL(listener === 'private' ? server.privateUrl : server.botUrl)
  const socket = connect({ port: Number(port), host: '127.0.0.1', localAddress: address })
  socket.on('error', () => undefined)
  socket.resume()
  socket.write(bytes(bot))
  return socket
}

async function settled(socket: Socket, { isAnswered }: Kind): Promise<void> {
  if (socket.destroyed) return
  const event = isAnswered === true ? 'data' : 'connect'
  if (event === 'connect' && !socket.connecting) return
  const waiting = new AbortController()
  const { signal } = waiting
  const events = [once(socket, event, { signal }), once(socket, 'close', { signal })]
  await Promise.race(events.map((each) => each.catch(() => undefined)))
  waiting.abort()
}

/** The next case must not meet connections of this one. */
async function closeAll(sockets: ReadonlySet<Socket>): Promise<void> {
  for (const socket of sockets) socket.destroy()
  await until(() => [...sockets].every(({ closed }) => closed))
}

/** Returns the client's port of the connection that carried the call, which succeeds. */
function portOfCall(server: Server, token = '', agent: Agent): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const sent = request(`${server.botUrl}/bot${token}/getMe`, { agent }, (answer) => {
      const { localPort } = answer.socket
      answer.resume()
      answer.once('end', () => {
        if (answer.statusCode === 200) resolve(localPort)
        else reject(new Error(`getMe was answered ${answer.statusCode}`))
      })
    })
    sent.once('error', reject)
    sent.end()
  })
}
