/** The cost of bodies that do not arrive like those of good clients, in a real server with two workers. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { makeToken } from '../../src/api/token.ts'
import {
  heldBodiesShareBytesMax,
  heldBodiesSharedAddressBytesMax,
} from '../../src/admission/budgets/body-budgets.ts'
import { unwantedPiecesMax } from '../../src/http/body.ts'
import { botOf, freshBotOf } from '../support/server/bot-of.ts'
import { type RawAnswer, RawConnection } from '../support/producers/raw-http.ts'
import { type Server, startServer } from '../support/server/server.ts'
import { sharedServer } from '../support/server/shared-server.ts'
import { until } from '../support/kit/until.ts'

const mib = 1 << 20
const shared = sharedServer()

/** A well-formed token with the right checksum that belongs to no bot: anybody can make one. */
const stranger = makeToken(botOf(0, 7), (count) => Buffer.alloc(count, 9))
const mistyped = `${botOf(0, 8)}:${'x'.repeat(35)}`

interface Start {
  readonly target: string
  readonly headers?: Readonly<Record<string, string>>
}

/** Opens a connection of the second worker, which forwards all requests for bots of the first. */
async function forwardingConnection(
  server: Server,
  kind: 'bot' | 'private',
): Promise<RawConnection> {
  const connection = RawConnection.to(kind === 'bot' ? server.botUrl : server.privateUrl)
  const path = kind === 'bot' ? `/bot${botOf(1)}:x` : `/v1/bots/${botOf(1)}/nothing`
  const key = kind === 'bot' ? '' : `Authorization: Bearer ${server.key}\r\n`
  connection.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n${key}\r\n`)
  assert.equal((await connection.answer()).status, 404)
  return connection
}

function begin(connection: RawConnection, { target, headers = {} }: Start): void {
  const all = { Host: 'localhost', ...headers }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  connection.write(`POST ${target} HTTP/1.1\r\n${lines.join('')}\r\n`)
}

const chunked = { 'Transfer-Encoding': 'chunked' }

/** Writes this many chunks of one byte each. */
async function writeBytes(connection: RawConnection, count: number): Promise<void> {
  const piece = '1\r\nx\r\n'.repeat(1 << 12)
  for (let left = count; left > 0; left -= 1 << 12) {
    if (!connection.socket.write(piece)) await once(connection.socket, 'drain')
  }
}

/** Returns by how much the workers grow at most while `act` runs. */
async function growthMib(server: Server, act: () => Promise<void>): Promise<number> {
  // 5 resets the peak value to the current one.
  for (const pid of server.workerPids()) writeFileSync(`/proc/${pid}/clear_refs`, '5')
  const before = memoryOf(server, 'VmRSS')
  await act()
  return Math.round((memoryOf(server, 'VmHWM') - before) / mib)
}

function memoryOf(server: Server, value: 'VmRSS' | 'VmHWM'): number {
  const each = server.workerPids().map((pid) => {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8')
    return Number(new RegExp(`${value}:\\s+(\\d+)`).exec(status)?.[1]) * 1024
  })
  return each.reduce((sum, bytes) => sum + bytes, 0)
}

async function metricOf(server: Server, name: string): Promise<number> {
  const { text } = await server.admin('GET', '/metrics')
  return Number(new RegExp(`^postbote_${name} (\\d+)`, 'm').exec(text)?.[1])
}

const heldBytes = (server: Server): Promise<number> => metricOf(server, 'body_bytes_held')

function address(nth: number): string {
  return `198.51.100.${nth}`
}

test('a body in chunks of one byte takes memory for its bytes and not for its chunks', async (t) => {
  // What is not collected yet would count, too, and newer versions of Node.js collect later.
  const server = await startServer(t, {
    workers: 2,
    env: { NODE_OPTIONS: '--max-semi-space-size=1' },
  })
  const askOneByOne = async (nth: number): Promise<number> => {
    const connection = await forwardingConnection(server, 'bot')
    // Each request has another address, so that no refusal is delayed.
    const headers = { ...chunked, 'X-Real-Ip': address(nth) }
    begin(connection, { target: `/bot${stranger}/getUpdates`, headers })
    await writeBytes(connection, 3 << 16)
    connection.write('0\r\n\r\n')
    const { status } = await connection.answer()
    connection.socket.destroy()
    return status
  }
  const grownMib = await growthMib(server, async () => {
    const statuses = await Promise.all([1, 2, 3, 4].map(askOneByOne))
    assert.deepEqual(statuses, [401, 401, 401, 401])
  })
  // With a Buffer per chunk it would be 315 to 335 MiB. What is collected later takes 130 to 170.
  assert(grownMib < 240, `${grownMib} MiB for 0.75 MiB`)
})

test('bodies that stall fill only their share of the memory, and other clients are served', async (t) => {
  const server = await shared()
  const bot = await server.register(freshBotOf(0))
  const bodyBytes = 4 * mib
  const [stalled, refused]: [RawConnection[], RawAnswer[]] = [[], []]
  t.after(() => stalled.forEach(({ socket }) => socket.destroy()))
  // In turn for a bot of the other worker and for one of this worker, all from one address that may stand for many
  // clients.
  const stall = async (isForwarded: boolean): Promise<void> => {
    const connection = isForwarded
      ? await forwardingConnection(server, 'bot')
      : RawConnection.to(server.botUrl)
    stalled.push(connection)
    begin(connection, {
      target: `/bot${isForwarded ? stranger : bot.token}/setWebhook`,
      headers: {
        'Content-Type': 'multipart/form-data; boundary=b',
        'Content-Length': String(bodyBytes),
      },
    })
    connection.write(Buffer.alloc(bodyBytes - 1_000))
    connection.answer().then((answer) => refused.push(answer), ignore)
  }
  const bodies = 80
  const roomFor = (2 * heldBodiesSharedAddressBytesMax) / bodyBytes
  const grownMib = await growthMib(server, async () => {
    for (let nth = 0; nth < bodies; nth++) await stall(nth % 2 === 0)
    await until(() => refused.length >= bodies - roomFor, 30_000)
  })
  // All of them would be 320 MiB.
  assert(grownMib < 220, `${grownMib} MiB`)
  for (const { status, headers, body } of refused) {
    assert.deepEqual([status, headers['retry-after']], [503, '5'])
    assert.deepEqual(JSON.parse(body).parameters, { retry_after: 5 })
  }
  const heldMib = (await heldBytes(server)) / mib
  // In each worker; there may be no room for one more.
  assert(heldMib <= 96 && heldMib > 88, `${heldMib} MiB`)
  // An ordinary call needs no room, and a known address and a producer find some.
  const target = `/bot${bot.token}/deleteWebhook`
  assert.equal((await server.call(bot.token, 'getUpdates')).status, 200)
  assert.equal(await largeCall(server, target, address(11)), 200)
  const text = 'y'.repeat(400_000)
  assert.equal(typeof (await server.push(bot.botId, { message: { text } })), 'number')
  // When they are gone, all room is free again.
  for (const { socket } of stalled) socket.destroy()
  await until(async () => (await heldBytes(server)) === 0)
  assert.equal(await largeCall(server, target, address(12)), 200)
})

function ignore(): void {
  // The test ends the connection.
}

/** A call of half a megabyte, in two pieces. */
async function largeCall(server: Server, target: string, from: string): Promise<number> {
  const connection = RawConnection.to(server.botUrl)
  const body = JSON.stringify({ foreign: 'x'.repeat(500_000) })
  begin(connection, {
    target,
    headers: {
      'X-Real-Ip': from,
      'Content-Type': 'application/json',
      'Content-Length': String(body.length),
    },
  })
  connection.write(body.slice(0, 100))
  connection.write(body.slice(100))
  const { status } = await connection.answer()
  connection.socket.destroy()
  return status
}

test('each address has a separate share of the memory for bodies', async (t) => {
  const server = await shared()
  const refusedBefore = await metricOf(server, 'bodies_refused_total')
  const open: RawConnection[] = []
  const statuses: number[] = []
  const stall = async (from: string): Promise<void> => {
    const connection = await forwardingConnection(server, 'bot')
    open.push(connection)
    begin(connection, {
      target: `/bot${stranger}/getUpdates`,
      headers: { 'X-Real-Ip': from, 'Content-Length': String(4 * mib) },
    })
    connection.write(Buffer.alloc(4 * mib - 1_000))
    connection.answer().then(({ status }) => statuses.push(status), ignore)
  }
  t.after(() => open.forEach(({ socket }) => socket.destroy()))
  // All in one IPv6 network.
  for (let nth = 1; nth <= 6; nth++) await stall(`2a00:1:2:3::${nth}`)
  await until(() => statuses.length === 2)
  assert.deepEqual(statuses, [503, 503])
  assert.equal(await metricOf(server, 'bodies_refused_total'), refusedBefore + 2)
  await stall('2a00:1:2:4::1')
  await until(async () => (await heldBytes(server)) > heldBodiesShareBytesMax + 3 * mib)
  assert.equal(statuses.length, 2)
  for (const { socket } of open) socket.destroy()
  await until(async () => (await heldBytes(server)) === 0)
})

test('a token that no bot can have is refused before the body arrives, and the body is not kept', async () => {
  const server = await shared()
  for (const isForwarded of [true, false]) {
    const connection = isForwarded
      ? await forwardingConnection(server, 'bot')
      : RawConnection.to(server.botUrl)
    for (const [nth, [target, status]] of (
      [
        [`/bot${mistyped}/getUpdates`, 401],
        [`/bot${botOf(0)}:/getUpdates`, 401],
        [`/bot${botOf(0)}:x/`, 404],
        [`/bot${botOf(0)}:x`, 404],
      ] as const
    ).entries()) {
      const headers = { 'X-Real-Ip': address(100 + 20 * Number(isForwarded) + nth) }
      begin(connection, { target, headers })
      const expected = await connection.answer()
      assert.equal(expected.status, status)
      // From another address: a second refusal within 3 s would be delayed.
      begin(connection, {
        target,
        headers: { ...chunked, 'X-Real-Ip': address(110 + 20 * Number(isForwarded) + nth) },
      })
      await writeBytes(connection, 1 << 13)
      const { status: given, body } = await connection.answer()
      assert.deepEqual([given, body], [status, expected.body], target)
      await writeBytes(connection, 1 << 13)
      assert.equal(await heldBytes(server), 0)
      // The connection can still be used.
      connection.write('0\r\n\r\n')
    }
    connection.socket.destroy()
  }
})

test('the part of a body that arrives while its refusal is held is read and discarded', async () => {
  const server = await shared()
  const refuse = async (isForwarded: boolean): Promise<void> => {
    const connection = isForwarded
      ? await forwardingConnection(server, 'bot')
      : RawConnection.to(server.botUrl)
    const headers = { 'X-Real-Ip': address(200 + Number(isForwarded)) }
    begin(connection, { target: `/bot${mistyped}/getUpdates`, headers })
    assert.equal((await connection.answer()).status, 401)
    // The next refusal to this address waits for 3 s; so would a body that is not read.
    const bytes = 32 * mib
    begin(connection, {
      target: `/bot${mistyped}/getUpdates`,
      headers: { ...headers, 'Content-Length': String(bytes) },
    })
    const order: string[] = []
    const answered = connection.answer().then(({ status }) => order.push(`answer ${status}`))
    connection.socket.write(Buffer.alloc(bytes), () => order.push('all sent'))
    await answered
    assert.deepEqual(order, ['all sent', 'answer 401'])
    connection.socket.destroy()
  }
  await Promise.all([refuse(true), refuse(false)])
})

test('a refused body in too many pieces closes its connection', async () => {
  const server = await shared()
  for (const isForwarded of [true, false]) {
    const connection = isForwarded
      ? await forwardingConnection(server, 'bot')
      : RawConnection.to(server.botUrl)
    const closed = new Promise((resolve) => connection.socket.once('close', resolve))
    const headers = { ...chunked, 'X-Real-Ip': address(210 + Number(isForwarded)) }
    begin(connection, { target: `/bot${mistyped}/getUpdates`, headers })
    connection.write('1\r\nx\r\n'.repeat(unwantedPiecesMax))
    // The connection ends immediately, whether the response was sent or not.
    const answer = await connection.answer().catch(() => undefined)
    if (answer !== undefined) assert.equal(answer.status, 401)
    await closed
  }
})

test('a private request without the key, or with another Host, is refused before its body arrives', async () => {
  const server = await shared()
  const key = { Authorization: `Bearer ${server.key}` }
  for (const isForwarded of [true, false]) {
    const connection = isForwarded
      ? await forwardingConnection(server, 'private')
      : RawConnection.to(server.privateUrl)
    for (const [headers, code] of [
      [{}, 'UNAUTHORIZED'],
      [{ Authorization: 'Bearer no' }, 'UNAUTHORIZED'],
      [{ ...key, Host: 'evil.example' }, 'BAD_HOST'],
    ] as const) {
      begin(connection, {
        target: `/v1/bots/${botOf(0)}/updates`,
        headers: { ...headers, ...chunked },
      })
      await writeBytes(connection, 1 << 13)
      const { body } = await connection.answer()
      assert.equal(JSON.parse(body).error.code, code)
      await writeBytes(connection, 1 << 13)
      assert.equal(await heldBytes(server), 0)
      connection.write('0\r\n\r\n')
    }
    connection.socket.destroy()
  }
})

test('an update in chunks of one byte arrives whole, whether it is forwarded or not', async () => {
  const server = await shared()
  const bot = await server.register(freshBotOf(0))
  const update = JSON.stringify({ message: { text: 'abcdefgh'.repeat(4_000) } })
  const bytes = update.replace(/./g, '1\r\n$&\r\n')
  for (const connection of [
    await forwardingConnection(server, 'private'),
    RawConnection.to(server.privateUrl),
  ]) {
    begin(connection, {
      target: `/v1/bots/${bot.botId}/updates`,
      headers: { ...chunked, Authorization: `Bearer ${server.key}` },
    })
    connection.write(`${bytes}0\r\n\r\n`)
    const { status, body } = await connection.answer()
    assert.equal(status, 200, body)
    connection.socket.destroy()
  }
  const { body } = await server.call(bot.token, 'getUpdates')
  const texts = body.result.map(({ message }: { message: object }) => JSON.stringify({ message }))
  assert.deepEqual(texts, [update, update])
  assert.equal(await heldBytes(server), 0)
})
