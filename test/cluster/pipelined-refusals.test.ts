/** Thousands of pipelined requests without a token: they cost a turn of the event loop little, and delay no other client. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { connect } from 'node:net'
import { test } from 'node:test'
import { pipelinedPerTurnMax } from '../../src/http/limits.ts'
import { callsWaitingKeyShare, callsWaitingMax } from '../../src/admission/budgets/call-turns.ts'
import { kib } from '../../src/kit/limits.ts'
import { sharedServer } from '../support/server/shared-server.ts'

const shared = sharedServer()
/** A busy machine takes long to give the workers as much CPU as is a budget. */
const floodMsMax = 60_000

test('of thousands of pipelined requests for unknown paths a bounded number gets responses, in order, and the connection is closed', async () => {
  const server = await shared()
  const { port } = new URL(server.botUrl)
  const socket = connect({ port: Number(port), host: '127.0.0.1' })
  let text = ''
  socket.on('data', (bytes) => (text += bytes.toString()))
  socket.on('error', () => undefined)
  socket.write('GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(20_000))
  await once(socket, 'close')
  const answers = text.split('HTTP/1.1 404 Not Found\r\n').length - 1
  assert.ok(answers > 0 && answers <= 2 * pipelinedPerTurnMax, `${answers} answers`)
  assert.equal(text.match(/\r\nConnection: close\r\n/g)?.length, 1)
  assert.match(text, /\r\nConnection: close\r\n(?:(?!HTTP\/1.1)[^])*$/)
})

test('the bound applies to the private listener without the key, and not to a producer with the key', async () => {
  const server = await shared()
  const bot = await server.register()
  const { port } = new URL(server.privateUrl)
  for (const path of ['/nowhere', '/v1/bots', '/healthz']) {
    const socket = connect({ port: Number(port), host: '127.0.0.1' })
    let text = ''
    socket.on('data', (bytes) => (text += bytes.toString()))
    socket.on('error', () => undefined)
    socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`.repeat(20_000))
    await once(socket, 'close')
    const answers = text.split('HTTP/1.1 ').length - 1
    assert.ok(answers > 0 && answers <= 2 * pipelinedPerTurnMax, `${path}: ${answers} answers`)
  }
  const body = '{"message":{"text":"hello"}}'
  const push = `POST /v1/bots/${bot.botId}/updates HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${server.key}\r\nContent-Length: ${body.length}\r\n`
  const calls = 4 * pipelinedPerTurnMax
  const socket = connect({ port: Number(port), host: '127.0.0.1' })
  socket.write(`${push}\r\n${body}`.repeat(calls - 1) + `${push}Connection: close\r\n\r\n${body}`)
  let text = ''
  for await (const bytes of socket) text += String(bytes)
  assert.equal(text.split('HTTP/1.1 200 OK\r\n').length - 1, calls)
})

test('all pipelined calls of a key on many connections get responses: no connection brings more than a piece before its calls wait', async () => {
  const server = await shared()
  const { port } = new URL(server.privateUrl)
  const call = `GET /v1/session HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${server.key}\r\n`
  // All first pieces may be parsed in one turn of one worker, so they have room beside each other; what follows has not.
  const callsOfPiece = Math.ceil((64 * kib) / call.length)
  const callsOfOne = 3 * callsOfPiece
  const connections = Math.floor((callsWaitingMax * callsWaitingKeyShare) / callsOfPiece)
  const answered = await Promise.all(
    Array.from({ length: connections }, async () => {
      const socket = connect({ port: Number(port), host: '127.0.0.1' })
      socket.write(`${call}\r\n`.repeat(callsOfOne - 1) + `${call}Connection: close\r\n\r\n`)
      let text = ''
      for await (const bytes of socket) text += String(bytes)
      return text.split('HTTP/1.1 200 OK\r\n').length - 1
    }),
  )
  const expected = Array.from({ length: connections }, () => callsOfOne)
  assert.deepEqual(answered, expected)
})

test('a load balancer that requests an unknown path repeatedly keeps its connection', async (t) => {
  const server = await shared()
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.after(() => agent.destroy())
  const ports = new Set<number | undefined>()
  for (let nth = 0; nth < 3 * pipelinedPerTurnMax; nth++) {
    const sent = request(`${server.botUrl}/`, { agent }).end()
    const [answer] = await once(sent, 'response')
    ports.add(answer.socket.localPort)
    assert.equal(answer.statusCode, 404)
    answer.resume()
    await once(answer, 'end')
  }
  assert.equal(ports.size, 1)
})

test('many pipelined calls all get responses', async () => {
  const server = await shared()
  const bot = await server.register()
  const { port } = new URL(server.botUrl)
  const socket = connect({ port: Number(port), host: '127.0.0.1', localAddress: '127.0.0.2' })
  const calls = pipelinedPerTurnMax - 1
  const call = `GET /bot${bot.token}/getMe HTTP/1.1\r\nHost: x\r\n`
  socket.write(`${call}\r\n`.repeat(calls) + `${call}Connection: close\r\n\r\n`)
  let text = ''
  for await (const bytes of socket) text += String(bytes)
  assert.equal(text.split('HTTP/1.1 200 OK\r\n').length - 1, calls + 1)
})

test('a client that has used up its budget gets one pipelined response, and others get all of theirs', async () => {
  const server = await shared()
  const { port } = new URL(server.botUrl)
  const calls = pipelinedPerTurnMax - 1
  const flood = async (localAddress: string): Promise<number> => {
    const socket = connect({ port: Number(port), host: '127.0.0.1', localAddress })
    let text = ''
    socket.on('data', (bytes) => (text += bytes.toString()))
    socket.on('error', () => undefined)
    const call = 'GET /nowhere HTTP/1.1\r\nHost: x\r\n'
    socket.write(`${call}\r\n`.repeat(calls - 1) + `${call}Connection: close\r\n\r\n`)
    await once(socket, 'close')
    return text.split('HTTP/1.1 ').length - 1
  }
  const hostile = '127.0.0.3'
  let fewest = Infinity
  const endMs = performance.now() + floodMsMax
  // Without a pause, because the budget comes back with time. It is that of one worker, and each gets some of the connections.
  const lane = async (): Promise<void> => {
    while (fewest > 2 && performance.now() < endMs) {
      fewest = Math.min(fewest, await flood(hostile))
    }
  }
  await Promise.all(Array.from({ length: 64 }, lane))
  // The first request on a connection is not a pipelined one.
  assert.ok(fewest <= 2, `${fewest} answers`)
  assert.equal(await flood('127.0.0.4'), calls)
})
