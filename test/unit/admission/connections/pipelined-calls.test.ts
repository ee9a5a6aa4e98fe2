import assert from 'node:assert/strict'
import type { RequestListener, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import {
  PipelinedCalls,
  pipelinedWaitingMax,
} from '../../../../src/admission/connections/pipelined-calls.ts'
import { type RawConnection, RawServer } from '../../../support/producers/raw-http.ts'
import { until } from '../../../support/kit/until.ts'

interface Setting {
  readonly connection: RawConnection
  /** The paths of the calls that have arrived, and of those that were started. */
  readonly arrived: string[]
  readonly started: string[]
  /** Sends pipelined calls, and waits until the last one has arrived. */
  readonly ask: (...urls: string[]) => Promise<void>
  /** Responds to a call that was started; calls that wait for it may start then. */
  readonly answer: (url: string) => void
  /** The responses of the calls that were started. */
  readonly open: ReadonlyMap<string, ServerResponse>
  /** Whether the server has noticed that the client is gone. */
  readonly isGone: () => boolean
}

/** A server that works like the router: it immediately starts a call without an earlier one. */
async function setUp(t: TestContext, mayOverlap = (_url: string, _before: string) => false) {
  const arrived: string[] = []
  const started: string[] = []
  let socket: Socket | undefined
  const open = new Map<string, ServerResponse>()
  const take: RequestListener = (request, response) => {
    const { url = '' } = request
    socket = request.socket
    arrived.push(url)
    const start = (): void => {
      started.push(url)
      open.set(url, response)
      request.resume()
    }
    if (response.socket !== null) start()
    else {
      PipelinedCalls.of(request.socket).add({
        response,
        start,
        mayOverlap: (before) => mayOverlap(url, before.req.url ?? ''),
      })
    }
  }
  const server = new RawServer(take)
  await server.listen()
  t.after(() => server.close())
  const connection = server.connect()
  const setting: Setting = {
    connection,
    arrived,
    started,
    open,
    isGone: () => socket?.destroyed ?? false,
    ask: async (...urls) => {
      connection.write(urls.map((url) => `GET ${url} HTTP/1.1\r\nHost: x\r\n\r\n`).join(''))
      await until(() => arrived.includes(urls.at(-1) ?? ''))
    },
    answer: (url) => {
      const response = open.get(url)
      assert(response !== undefined, `${url} was not started`)
      response.setHeader('Content-Length', url.length)
      response.end(url)
    },
  }
  return setting
}

const ofBot = (botId: number, name: string): string => `/v1/bots/${botId}/${name}`

test('a call waits until the calls of its bot before it on the connection have their responses', async (t) => {
  const { ask, answer, started, connection } = await setUp(t)
  const [a, b, c] = ['a', 'b', 'c'].map((name) => ofBot(100, name))
  await ask(a!, b!, c!)
  assert.deepEqual(started, [a])
  answer(a!)
  assert.equal((await connection.answer()).body, a)
  await until(() => started.length === 2)
  answer(b!)
  await until(() => started.length === 3)
  answer(c!)
  assert.equal((await connection.answer()).body, b)
  assert.equal((await connection.answer()).body, c)
})

test('calls of other bots do not wait, and the order starts again after an empty line', async (t) => {
  const { ask, answer, started, connection } = await setUp(t)
  const [one, other, again] = [ofBot(100, 'a'), ofBot(101, 'b'), ofBot(101, 'c')]
  await ask(one, other, again)
  assert.deepEqual(started, [one, other])
  answer(one)
  answer(other)
  await until(() => started.length === 3)
  answer(again)
  for (const url of [one, other, again]) assert.equal((await connection.answer()).body, url)
  started.length = 0
  await ask(ofBot(100, 'd'), ofBot(100, 'e'), ofBot(102, 'f'))
  assert.deepEqual(started, [ofBot(100, 'd'), ofBot(102, 'f')])
})

test('a call that names no bot waits for all before it, and all after it wait for it', async (t) => {
  const { ask, answer, started } = await setUp(t)
  const urls = [ofBot(100, 'a'), ofBot(101, 'b'), '/v1/bots', ofBot(102, 'c'), ofBot(103, 'd')]
  const [a, b, none, c, d] = urls
  await ask(...urls)
  assert.deepEqual(started, [a, b])
  // Finished, but its response is not sent yet.
  answer(b!)
  answer(a!)
  await until(() => started.length === 3)
  assert.deepEqual(started, [a, b, none])
  answer(none!)
  await until(() => started.length === 5)
  assert.deepEqual(started, [a, b, none, c, d])
})

test('a call after one of its bot waits for calls in between that name no bot', async (t) => {
  const { ask, answer, started } = await setUp(t)
  const [a, none, b] = [ofBot(100, 'a'), '/v1/bots', ofBot(100, 'b')]
  await ask(a, none, b)
  answer(a)
  await until(() => started.length === 2)
  assert.deepEqual(started, [a, none])
  answer(none)
  await until(() => started.length === 3)
})

test('a call with a response delays no other, even while others are in progress', async (t) => {
  const { ask, answer, started, connection } = await setUp(t)
  const [a, none, other, b] = [ofBot(100, 'a'), '/v1/bots', ofBot(101, 'c'), ofBot(100, 'b')]
  await ask(a, none, other)
  answer(a)
  await until(() => started.length === 2)
  answer(none)
  for (const url of [a, none]) assert.equal((await connection.answer()).body, url)
  await until(() => started.length === 3)
  await ask(b)
  assert.deepEqual(started, [a, none, other, b])
})

const isPush = (url: string): boolean => url.includes('push')

test('calls that are ordered elsewhere overlap, but none overtakes one that waits', async (t) => {
  const { ask, answer, started } = await setUp(t, (url, before) => isPush(url) && isPush(before))
  const names = ['push1', 'push2', 'push3', 'get', 'push4', 'push5']
  const urls = names.map((name) => ofBot(100, name))
  await ask(...urls)
  assert.deepEqual(started, urls.slice(0, 3))
  for (const url of urls.slice(0, 3)) answer(url)
  await until(() => started.length === 4)
  assert.deepEqual(started, urls.slice(0, 4))
  answer(urls[3]!)
  await until(() => started.length === 5)
  answer(urls[4]!)
  await until(() => started.length === 6)
  assert.deepEqual(started, urls)
})

test('a waiting call is not started for a client that has disconnected', async (t) => {
  const { ask, answer, open, started, connection, isGone } = await setUp(t)
  await ask(ofBot(100, 'a'), ofBot(100, 'b'), ofBot(101, 'c'))
  const [one, other] = [ofBot(100, 'a'), ofBot(101, 'c')]
  assert.deepEqual(started, [one, other])
  connection.socket.destroy()
  await until(isGone)
  answer(one)
  answer(other)
  // The last bytes of the response were sent when the client left.
  open.get(one)?.emit('finish')
  await new Promise((resolve) => setImmediate(resolve))
  assert.deepEqual(started, [one, other])
})

test('no more is read from a connection with many waiting calls until there are fewer', async (t) => {
  const started: ServerResponse[] = []
  let arrived = 0
  const server = new RawServer((request, response) => {
    arrived += 1
    const start = (): void => {
      // Resumes the socket, as reading a body does.
      request.resume()
      started.push(response)
    }
    if (response.socket !== null) start()
    else PipelinedCalls.of(request.socket).add({ response, start, mayOverlap: () => false })
  })
  await server.listen()
  t.after(() => server.close())
  const connection = server.connect()
  const bytes = 1_000
  const head = `POST ${ofBot(100, 'updates')} HTTP/1.1\r\nHost: x\r\nContent-Length: ${bytes}\r\n\r\n`
  const calls = 2_000
  connection.write((head + 'x'.repeat(bytes)).repeat(calls))
  const readAtOnceMax = Math.ceil((64 * 1024) / bytes)
  for (let nth = 0; nth < calls; nth++) {
    // Long enough to read everything, if it were read.
    if (nth < 3) await new Promise((resolve) => setTimeout(resolve, 100))
    await until(() => started.length > nth)
    const waiting = arrived - started.length
    assert(waiting <= pipelinedWaitingMax + readAtOnceMax, `${waiting} wait behind ${nth}`)
    started[nth]?.writeHead(200, { 'Content-Length': 0 }).end()
    assert.equal((await connection.answer()).status, 200)
  }
  assert.equal(arrived, calls)
})
