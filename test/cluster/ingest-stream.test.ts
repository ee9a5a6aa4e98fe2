/** NDJSON streams of pairs (protocol.md §9) for bots of both workers of a real server. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { test } from 'node:test'
import { pairText, type PairResult, RawPushStream } from '../support/producers/raw-push-stream.ts'
import { type Server, startServer } from '../support/server/server.ts'
import { botOf, freshBotOf, map } from '../support/server/bot-of.ts'
import { sharedServer } from '../support/server/shared-server.ts'
import { until } from '../support/kit/until.ts'

const mib = 1024 * 1024
const shared = sharedServer()

async function registerBoth(server: Server) {
  const first = await server.register(freshBotOf(0))
  const second = await server.register(freshBotOf(1))
  return [first, second] as const
}

function messageText(fields: object): string {
  return JSON.stringify({ message: fields })
}

async function pollTexts(server: Server, token: string, method = 'getUpdates'): Promise<unknown[]> {
  const { body } = await server.call(token, method)
  return body.result.map((update: { message: { text: unknown } }) => update.message.text)
}

test('results come in the order of the pairs, and a bad pair fails alone', async (t) => {
  const server = await startServer(t, { workers: 2, flags: ['--max-update-bytes=4096'] })
  const bots = await registerBoth(server)
  const stream = new RawPushStream(server)
  const expected: [string, string][] = []
  for (let round = 0; round < 20; round++) {
    for (const { botId: bot_id } of bots) {
      const good = messageText({ text: round })
      const cases: [string, string][] = [
        [pairText({ bot_id, ordering_key: round }, good), 'update_id'],
        [pairText({ bot_id }, '{"chat_member":{}}'), 'filtered'],
        [pairText({ bot_id, test: true }, good), 'update_id'],
        [pairText({ bot_id }, '{"message":{}'), 'BAD_UPDATE'],
        [pairText({ bot_id }, ''), 'BAD_UPDATE'],
        [pairText({ bot_id, orderingkey: 1 }, good), 'BAD_REQUEST'],
        [pairText({ bot_id, ttl: 0 }, good), 'BAD_REQUEST'],
        [`{"bot_id":${bot_id},"bot_id":${bot_id + 1}}\n${good}\n`, 'BAD_REQUEST'],
        [`not json\n${good}\n`, 'BAD_REQUEST'],
        [pairText({ bot_id: 99 }, good), 'BAD_REQUEST'],
        [pairText({ bot_id: botOf(round % 2, 9) }, good), 'UNKNOWN_BOT'],
        [pairText({ bot_id, ordering_key: 'x'.repeat(5_000) }, good), 'UPDATE_TOO_LARGE'],
        [pairText({ bot_id }, messageText({ text: 'x'.repeat(4_200) })), 'UPDATE_TOO_LARGE'],
        [pairText({ bot_id }, messageText({ text: 'x'.repeat(100_000) })), 'UPDATE_TOO_LARGE'],
        [`\n\n${JSON.stringify({ bot_id, test: true })}\r\n${good}\r\n`, 'update_id'],
      ]
      expected.push(...cases)
    }
  }
  const results = expected.map(() => stream.expect())
  for (const [text] of expected) stream.write(text)
  stream.write(`{"bot_id":${bots[0].botId}}\n`)
  const half = stream.expect()
  assert.equal(await stream.end(), true)
  for (const [at, [text, kind]] of expected.entries()) {
    const result = await results[at]
    const what = result?.error?.code ?? Object.keys(result ?? {})[0]
    assert.equal(what, kind, `${text.slice(0, 100)}: ${JSON.stringify(result)}`)
  }
  assert.equal((await half)?.error?.code, 'BAD_REQUEST')
  assert.equal(stream.lines.length, expected.length + 1)
  for (const { token } of bots) {
    const rounds = Array.from({ length: 20 }, (_, round) => round)
    assert.deepEqual(await pollTexts(server, token), rounds)
    assert.deepEqual(
      await pollTexts(server, token, 'test/getUpdates'),
      rounds.flatMap((round) => [round, round]),
    )
  }
})

test('a blank line of a stream is skipped before a header and is an empty update after one', async () => {
  const server = await shared()
  const { botId, token } = await server.register()
  const header = `{"bot_id":${botId}}`
  const [one, two] = ['{"message":{"text":1}}', '{"message":{"text":2}}']
  const lines = ['', '\r', header, one, '', '', header, '', header, two, ' ', two, '', '']
  const { text } = await server.admin('POST', '/v1/updates', lines.join('\n'))
  const results = text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  const kinds = results.map((result) => result.error?.code ?? Object.keys(result)[0])
  assert.deepEqual(kinds, ['update_id', 'BAD_UPDATE', 'update_id', 'BAD_REQUEST'])
  const { body } = await server.call(token, 'getUpdates')
  const texts = body.result.map((update: { message: { text: number } }) => update.message.text)
  assert.deepEqual(texts, [1, 2])
})

test('a stream may arrive in pieces of any size, and its last line needs no line break', async () => {
  const server = await shared()
  const bots = await registerBoth(server)
  const text = bots
    .map(({ botId: bot_id }) => pairText({ bot_id }, { message: { text: 'ü€' } }))
    .join('')
  const bytes = Buffer.from(text.slice(0, -1))
  for (let at = 1; at < bytes.length; at += 3) {
    const stream = new RawPushStream(server)
    const results = [stream.expect(), stream.expect()]
    stream.write(bytes.subarray(0, at))
    await stream.response
    stream.write(bytes.subarray(at))
    assert.equal(await stream.end(), true)
    for (const result of await Promise.all(results)) assert(result?.update_id !== undefined)
  }
  const byteByByte = new RawPushStream(server)
  for (const byte of bytes) byteByByte.write(Buffer.of(byte))
  assert.equal(await byteByByte.end(), true)
  assert.equal(byteByByte.lines.length, 2)
})

test('pairs of almost a megabyte arrive whole at both workers', async (t) => {
  const server = await startServer(t, { workers: 2, flags: ['--max-update-bytes=1048576'] })
  const bots = await registerBoth(server)
  const stream = new RawPushStream(server)
  const results: Promise<PairResult | undefined>[] = []
  for (let round = 0; round < 8; round++) {
    for (const { botId: bot_id } of bots) {
      results.push(stream.push({ bot_id }, { message: { text: `${round}`.repeat(mib - 100) } }))
    }
  }
  assert.equal(await stream.end(), true)
  for (const result of await Promise.all(results)) assert(result?.update_id !== undefined)
  for (const { token } of bots) {
    const texts: unknown[] = []
    for (let offset = 0; texts.length < 8; ) {
      const { body, text } = await server.call(token, 'getUpdates', { offset })
      assert(text.length < 4 * mib)
      for (const { update_id, message } of body.result) {
        texts.push(message.text)
        offset = update_id + 1
      }
    }
    assert.deepEqual(
      texts.map((text) => [String(text)[0], String(text).length]),
      Array.from({ length: 8 }, (_, round) => [`${round}`, mib - 100]),
    )
  }
})

test('a producer that disconnects during a stream loses none of the complete pairs that it sent', async (t) => {
  const server = await startServer(t, { workers: 2 })
  const bots = await registerBoth(server)
  const stream = new RawPushStream(server)
  const results = [0, 1, 2, 3].map((at) =>
    stream.push({ bot_id: bots[at % 2]?.botId ?? 0 }, { message: { text: at } }),
  )
  assert((await results[3])?.update_id !== undefined)
  stream.write(pairText({ bot_id: bots[0].botId }, { message: { text: 'half' } }).slice(0, -9))
  stream.destroy()
  await stream.ended
  assert.deepEqual(await pollTexts(server, bots[0].token), [0, 2])
  assert.deepEqual(await pollTexts(server, bots[1].token), [1, 3])
  await server.push(bots[0].botId, { message: { text: 'on' } })
  assert.equal(await server.stop(), 0)
})

test('a producer that never reads its results is slowed down, and others are not', async (t) => {
  const server = await shared()
  const bots = await registerBoth(server)
  const socket = connect({ host: '127.0.0.1', port: Number(new URL(server.privateUrl).port) })
  t.after(() => socket.destroy())
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  socket.pause()
  socket.write(
    `POST /v1/updates HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${server.key}\r\n` +
      'Transfer-Encoding: chunked\r\n\r\n',
  )
  // Pairs that fail turn short lines into long results.
  const pairs = Array.from({ length: 200 }, (_, at) =>
    pairText({ bot_id: bots[at % 2]?.botId ?? 0 }, '{}'),
  ).join('')
  const chunk = Buffer.from(`${Buffer.byteLength(pairs).toString(16)}\r\n${pairs}\r\n`)
  let written = 0
  for (; written < 64 * mib; written += chunk.length) {
    if (!socket.write(chunk) && !(await drainsWithin(socket, 2_000))) break
  }
  assert(written < 64 * mib, 'the server went on reading')
  t.diagnostic(`held back after ${(written / mib).toFixed(1)} MiB`)
  for (const { botId, token } of bots) {
    const id = await server.push(botId, { message: { text: 'other' } })
    assert.equal((await server.call(token, 'getUpdates')).body.result[0].update_id, id)
  }
  socket.destroy()
  await until(async () => (await server.admin('GET', '/readyz')).status === 200)
})

async function drainsWithin(socket: Socket, ms: number): Promise<boolean> {
  try {
    await once(socket, 'drain', { signal: AbortSignal.timeout(ms) })
    return true
  } catch {
    return false
  }
}

test('the pairs of a stream for their worker are not seen by the other one', async (t) => {
  const server = await startServer(t, { workers: 2 })
  const { body } = await server.admin('GET', '/v1/shards')
  assert.deepEqual([body.shards, body.groups], [8, [0, 1].map((worker) => map.shardsOf(worker))])
  const bots = await registerBoth(server)
  const pidOf = async (worker: number): Promise<number> => {
    const nodes = await server.admin('GET', '/v1/nodes')
    return nodes.body.nodes[0].workers[worker].pid
  }
  const pids = [await pidOf(0), await pidOf(1)] as const
  const order = [0, 1] as const
  for (const worker of order) {
    const other = pids[1 - worker] ?? assert.fail()
    process.kill(other, 'SIGSTOP')
    try {
      // Without the shard, each second of these streams would wait.
      for (let nth = 0; nth < 4; nth++) {
        const stream = new RawPushStream(server, { shard: map.shardsOf(worker)[nth] })
        const result = await stream.push({ bot_id: bots[worker].botId }, { message: {} })
        assert(result?.update_id !== undefined, JSON.stringify(result))
        assert(await stream.end())
      }
    } finally {
      process.kill(other, 'SIGCONT')
    }
  }
})

test('a stream without the key, or with a wrong one, is refused before it is read', async () => {
  const server = await shared()
  for (const key of ['', 'wrong']) {
    const stream = new RawPushStream({ privateUrl: server.privateUrl, key })
    const { statusCode } = await stream.response
    assert.equal(statusCode, 401)
    stream.destroy()
  }
})
