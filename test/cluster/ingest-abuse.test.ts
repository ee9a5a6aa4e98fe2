/**
 * Slow and broken producers at the real server: they cost bounded memory, incomplete pairs are not stored, and other
 * streams go on. There is one worker, so that all streams meet.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { test, type TestContext } from 'node:test'
import { pairText, RawPushStream } from '../support/producers/raw-push-stream.ts'
import { type Server, startServer } from '../support/server/server.ts'
import { shared } from '../support/server/shared-server.ts'
import { until } from '../support/kit/until.ts'

/** For tests that measure no memory. */
const sharedServer = shared((owner) => startServer(owner))
const mib = 1024 * 1024
/** The default line takes a second; `POSTBOTE_LINE_MIB=1024` takes ten. */
const endlessBytes = Number(process.env['POSTBOTE_LINE_MIB'] ?? 256) * mib

/** Opens a stream as bytes on a socket; `chunk` frames what is sent. */
async function openRaw(t: TestContext, server: Server): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port: Number(new URL(server.privateUrl).port) })
  t.after(() => socket.destroy())
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  socket.write(
    `POST /v1/updates HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${server.key}\r\n` +
      'Transfer-Encoding: chunked\r\n\r\n',
  )
  return socket
}

function chunk(bytes: string | Buffer): Buffer {
  const body = Buffer.from(bytes)
  return Buffer.concat([Buffer.from(`${body.length.toString(16)}\r\n`), body, Buffer.from('\r\n')])
}

function residentMib(server: Server): number {
  const [pid] = server.workerPids()
  const [, kib] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kib) / 1024
}

/** Checks that other producers are served at the same time. */
async function assertOthersGoOn(server: Server, botId: number): Promise<void> {
  const stream = new RawPushStream(server)
  const result = await stream.push({ bot_id: botId }, { message: { text: 'other' } })
  assert.ok(result?.update_id !== undefined)
  assert.equal(await stream.end(), true)
}

test('a line without an end takes no memory and fails alone, whatever its length', async (t) => {
  const server = await startServer(t, { workers: 1 })
  const { botId } = await server.register()
  await assertOthersGoOn(server, botId)
  const before = residentMib(server)
  const socket = await openRaw(t, server)
  let received = ''
  socket.on('data', (bytes) => (received += bytes.toString()))
  const good = pairText({ bot_id: botId }, { message: { text: 'x' } })
  socket.write(chunk(`${good}{"bot_id":${botId}}\n{"message":{"text":"`))
  const piece = chunk(Buffer.alloc(mib, 'x'))
  let largest = 0
  for (let sent = 0; sent < endlessBytes; sent += mib) {
    if (!socket.write(piece)) await once(socket, 'drain')
    if (sent % (32 * mib) === 0) largest = Math.max(largest, residentMib(server))
  }
  await assertOthersGoOn(server, botId)
  socket.write(chunk(`\n${good}`))
  socket.write('0\r\n\r\n')
  await until(async () => received.endsWith('0\r\n\r\n'))
  assert.deepEqual(received.match(/update_id|UPDATE_TOO_LARGE/g), [
    'update_id',
    'UPDATE_TOO_LARGE',
    'update_id',
  ])
  t.diagnostic(`grew from ${before.toFixed()} to ${largest.toFixed()} MiB`)
  assert.ok(largest - before < 100)
})

test('producers that stop in the middle of large updates take a bounded amount of memory', async (t) => {
  const flags = [`--max-update-bytes=${4 * mib - 100}`]
  const server = await startServer(t, { workers: 1, flags })
  const { botId, token } = await server.register()
  await assertOthersGoOn(server, botId)
  const before = residentMib(server)
  const half = Buffer.concat([
    Buffer.from(`{"bot_id":${botId}}\n{"message":{"text":"`),
    Buffer.alloc(4 * mib - 2_000, 'x'),
  ])
  const sockets: Socket[] = []
  for (let nth = 0; nth < 120; nth++) {
    const socket = await openRaw(t, server)
    socket.write(chunk(half))
    sockets.push(socket)
  }
  // 16 lines may be gathered at a time; the rest of the others stays in the kernel.
  await until(async () => sockets.filter(({ writableLength }) => writableLength === 0).length >= 16)
  let grown = 0
  for (let nth = 0; nth < 5; nth++) {
    await assertOthersGoOn(server, botId)
    grown = Math.max(grown, residentMib(server) - before)
  }
  t.diagnostic(`grew by ${grown.toFixed()} MiB of ${120 * 4}`)
  assert.ok(grown < 220)
  for (const socket of sockets) socket.destroy()
  const whole = new RawPushStream(server)
  const text = 'y'.repeat(3 * mib)
  assert.ok((await whole.push({ bot_id: botId }, { message: { text } }))?.update_id !== undefined)
  assert.equal(await whole.end(), true)
  const { body } = await server.call(token, 'getUpdates', { allowed_updates: ['message'] })
  assert.deepEqual(
    body.result.map((update: { message: { text: string } }) => update.message.text.slice(0, 5)),
    ['other', 'other', 'other', 'other', 'other', 'other', 'yyyyy'],
  )
})

test('a single update follows the same rules whether a thread checks it or not', async () => {
  const server = await sharedServer()
  const { botId, token } = await server.register()
  for (const bytes of [10, 33_000, 200_000, 500_000]) {
    const text = 'ü'.repeat(bytes / 2)
    const id = await server.push(botId, { message: { chat: { id: 5 }, text } })
    const { body } = await server.call(token, 'getUpdates', { offset: id })
    assert.equal(body.result[0].message.text, text)
    const bad = JSON.stringify({ message: { text } }).slice(0, -1)
    const refused = await server.admin('POST', `/v1/bots/${botId}/updates`, bad)
    assert.equal(refused.status, 400)
    assert.match(refused.text, /BAD_UPDATE.*after the only key at byte/)
  }
})

test('wherever a producer breaks off, complete pairs are stored and incomplete ones are not', async (t) => {
  const server = await sharedServer()
  const { botId, token } = await server.register()
  const large = 'z'.repeat(100_000)
  const pair = (text: string): string => pairText({ bot_id: botId }, { message: { text } })
  const ends = [
    '',
    '{"bot',
    `{"bot_id":${botId}}`,
    `{"bot_id":${botId}}\n`,
    pair('half').slice(0, -1),
  ]
  ends.push(pair(large).slice(0, 50_000), pair(large).slice(0, -3))
  const expected: string[] = []
  for (const [nth, end] of ends.entries()) {
    for (const isUnanswered of [false, true]) {
      const socket = await openRaw(t, server)
      socket.write(chunk(pair(`${nth} ${isUnanswered}`) + pair(`${nth} ${large}`)))
      expected.push(`${nth} ${isUnanswered}`, `${nth} zz`)
      let received = ''
      socket.on('data', (bytes) => (received += bytes.toString()))
      if (!isUnanswered) await until(async () => received.match(/update_id/g)?.length === 2)
      socket.write(chunk(`\n${end}`), () => (isUnanswered ? socket.end() : socket.destroy()))
      await once(socket, 'close')
    }
  }
  // A poll that comes soon after another one gets only one update.
  await until(async () => {
    const { body } = await server.admin('GET', `/v1/bots/${botId}`)
    return body.pending >= expected.length
  })
  const { body } = await server.call(token, 'getUpdates', { limit: 100 })
  const texts: string[] = body.result.map(
    (update: { message: { text: string } }) => update.message.text,
  )
  assert.deepEqual(
    texts.map((text) => (text.length > 50 ? text.slice(0, 4) : text)),
    expected,
  )
  await assertOthersGoOn(server, botId)
})

test('a slow stream waits only for a bounded number of pairs of streams at full speed', async (t) => {
  const server = await startServer(t, { workers: 1, flags: ['--max-pending-updates=10000000'] })
  const bots = await Promise.all(Array.from({ length: 10 }, () => server.register()))
  const pairs = Array.from({ length: 500 }, (_, at) =>
    pairText({ bot_id: bots[at % 9]?.botId ?? 0 }, { message: { text: 'x'.repeat(250) } }),
  ).join('')
  const piece = chunk(pairs)
  let answered = 0
  let isOver = false
  const heavy = await Promise.all(Array.from({ length: 24 }, () => openRaw(t, server)))
  for (const socket of heavy) {
    // Apart from the head of the response and its framing, a result ends a line.
    socket.on('data', (bytes) => {
      for (const byte of bytes) if (byte === 0x7d) answered += 1
    })
    const send = (): void => {
      if (isOver) return
      while (socket.write(piece));
    }
    socket.on('drain', send)
    send()
  }
  await until(async () => answered > 5_000)
  const trickle = new RawPushStream(server)
  const passed: number[] = []
  for (let nth = 0; nth < 7; nth++) {
    const from = answered
    const result = await trickle.push(
      { bot_id: bots[9]?.botId ?? 0 },
      { message: { text: `${nth}` } },
    )
    assert.ok(result?.update_id !== undefined)
    passed.push(answered - from)
  }
  isOver = true
  assert.equal(await trickle.end(), true)
  const median = passed.toSorted((a, b) => a - b)[3] ?? Infinity
  t.diagnostic(`pairs of others between a push and its result: ${passed.join(' ')}`)
  // Eight MiB of pairs that weigh 850 each, those at the commit, and a slice of each stream; without a bound it would be
  // 190,000.
  assert.ok(median < 30_000)
})
