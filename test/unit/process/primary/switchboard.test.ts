import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { WaitingConnection } from '../../../../src/process/primary/hand-off.ts'
import type { ListenerKind } from '../../../../src/http/listener.ts'
import type { NamedOwner } from '../../../../src/process/primary/request-line.ts'
import { Switchboard } from '../../../../src/process/primary/switchboard.ts'
import { PostboteError } from '../../../../src/kit/errors.ts'
import { FakeClock } from '../../../support/kit/fake-clock.ts'

interface Routed {
  readonly owner: NamedOwner | undefined
  readonly connection: WaitingConnection
}

const silent = { debug: skip, info: skip, warn: skip, error: skip }

async function setUp(
  t: TestContext,
  listener: ListenerKind = 'bot',
  {
    throws = false,
    openMax,
    isTls = false,
  }: { throws?: boolean; openMax?: number; isTls?: boolean } = {},
) {
  const counted: string[] = []
  const clock = new FakeClock()
  const routed: Routed[] = []
  let arrived: () => void = skip
  const switchboard = new Switchboard({
    clock,
    log: silent,
    counters: { add: (name) => void counted.push(name), observe: () => undefined },
    openMax,
    route(owner, connection) {
      if (throws) throw new Error('a bug')
      routed.push({ owner, connection })
      arrived()
    },
  })
  const address = await switchboard.listen({
    listener,
    address: { host: '127.0.0.1', port: 0 },
    isTls,
  })
  const port = 'port' in address ? address.port : 0
  t.after(() => {
    switchboard.close()
    for (const { connection } of routed) connection.handedOver()
  })
  return {
    clock,
    switchboard,
    routed,
    counted,
    connect: async (first?: string | Buffer): Promise<Socket> => {
      const socket = new Socket()
      socket.connect(port, '127.0.0.1')
      t.after(() => socket.destroy())
      socket.on('error', skip)
      await once(socket, 'connect')
      if (first !== undefined) socket.write(first)
      return socket
    },
    next: () => new Promise<void>((resolve) => (arrived = resolve)),
  }
}

test('a connection is routed by its first line, with every byte that was read', async (t) => {
  const { connect, next, routed } = await setUp(t)
  const socket = await connect('GET /bot1')
  const arrived = next()
  socket.write('23:x/getMe HTTP/1.1\r\nHost: x\r\n\r\n')
  await arrived
  assert.deepEqual(routed[0]?.owner, { botId: 123 })
  assert.match(routed[0]?.connection.bytes.toString() ?? '', /^GET \/bot123:x\/getMe/)
  assert.equal(routed[0]?.connection.clientAddress, '127.0.0.1')
})

test('after the first line the primary reads nothing more', async (t) => {
  const { connect, next, routed } = await setUp(t)
  const arrived = next()
  const socket = await connect('GET /bot123:x/getMe HTTP/1.1\r\n')
  await arrived
  const bytes = routed[0]?.connection.bytes.length
  socket.write(Buffer.alloc(100_000))
  for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve))
  const [first] = routed
  assert.equal(Reflect.get(first?.connection.handle() ?? {}, 'bytesRead'), bytes)
})

test('a connection with TLS goes to any worker unread, and is closed if none takes it', async (t) => {
  const { connect, next, routed, switchboard } = await setUp(t, 'bot', { isTls: true })
  const arrived = next()
  const socket = await connect('GET /bot123:x/getMe HTTP/1.1\r\n\r\n')
  await arrived
  for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve))
  const [{ owner, connection } = assert.fail()] = routed
  assert.deepEqual([owner, connection.bytes.length, switchboard.awaiting], [undefined, 0, 0])
  assert.equal(Reflect.get(connection.handle() ?? {}, 'bytesRead'), 0)
  connection.refuse(new PostboteError('UNAVAILABLE'))
  assert.equal(await all(socket), '')
})

test('an incomplete line gets 408 after 10 s in the form of the listener', async (t) => {
  for (const [listener, form] of [
    ['bot', '{"ok":false,"error_code":408'],
    ['private', '{"error":{"code":"REQUEST_TIMEOUT"'],
  ] as const) {
    const { connect, clock, switchboard } = await setUp(t, listener)
    const socket = await connect('GET /bot12')
    await until(() => switchboard.awaiting === 1)
    await untilRead()
    await clock.advance(9_999)
    assert.equal(switchboard.awaiting, 1)
    const answer = all(socket)
    await clock.advance(1)
    assert.match(await answer, new RegExp(`^HTTP/1.1 408 [^]*\r\n\r\n${form}`))
    assert.equal(switchboard.awaiting, 0)
  }
})

test('a connection without a single byte is closed after 10 s without a response', async (t) => {
  const { connect, clock, switchboard } = await setUp(t)
  const socket = await connect()
  await until(() => switchboard.awaiting === 1)
  const answer = all(socket)
  await clock.advance(10_000)
  assert.equal(await answer, '')
})

test('a first line without an end gets 431, and binary noise gets 400', async (t) => {
  const { connect } = await setUp(t)
  assert.match(await all(await connect(`GET /${'a'.repeat(9_000)}`)), /^HTTP\/1.1 431 /)
  assert.match(await all(await connect(Buffer.from([0x16, 3, 1, 2, 0]))), /^HTTP\/1.1 400 /)
})

test('a refusal arrives even while the client is sending', async (t) => {
  const { connect, next, routed } = await setUp(t)
  const arrived = next()
  const socket = await connect('POST /bot123:x/getMe HTTP/1.1\r\nContent-Length: 900000\r\n\r\n')
  await arrived
  socket.write(Buffer.alloc(900_000))
  const answer = all(socket)
  routed[0]?.connection.refuse(new PostboteError('UNAVAILABLE'))
  assert.match(await answer, /^HTTP\/1.1 503 [^]*"error_code":503/)
})

test('clients that disconnect or reset at any point do no harm', async (t) => {
  const { connect, next, routed, switchboard } = await setUp(t)
  for (const first of [undefined, 'GET', 'GET /bot123']) {
    ;(await connect(first)).resetAndDestroy()
    ;(await connect(first)).destroy()
    ;(await connect(first)).end()
  }
  const arrived = next()
  const reset = await connect('GET /bot123:x/getMe HTTP/1.1\r\n\r\n')
  await arrived
  reset.resetAndDestroy()
  await once(reset, 'close')
  routed[0]?.connection.refuse(new PostboteError('UNAVAILABLE'))
  const again = next()
  await connect('GET / HTTP/1.1\r\n\r\n')
  await again
  await until(() => switchboard.awaiting === 0)
})

test('a bug in routing ends that connection and not the process', async (t) => {
  const { connect } = await setUp(t, 'bot', { throws: true })
  assert.equal(await all(await connect('GET / HTTP/1.1\r\n')), '')
})

test('the socket file of a dead server is replaced, and that of a live server and other files are not', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'pb-'))
  t.after(() => rmSync(directory, { recursive: true }))
  const switchboard = new Switchboard({ clock: new FakeClock(), log: silent, route: skip })
  t.after(() => switchboard.close())
  const path = join(directory, 's')
  const living = createServer().listen(path)
  await once(living, 'listening')
  const listen = (at: string) => switchboard.listen({ listener: 'bot', address: { path: at } })
  await assert.rejects(listen(path), { code: 'EADDRINUSE' })
  living.close()
  const stale = join(directory, 'stale')
  const script = `require('net').createServer().listen(${JSON.stringify(stale)}, () => process.kill(process.pid, 'SIGKILL'))`
  spawnSync(process.execPath, ['-e', script])
  assert.ok(existsSync(stale))
  assert.deepEqual(await listen(stale), { path: stale })
  const file = join(directory, 'file')
  writeFileSync(file, 'precious')
  await assert.rejects(listen(file), { code: 'EADDRINUSE' })
  assert.ok(existsSync(file))
})

test('at the limit of connections the oldest one without a request line is closed', async (t) => {
  const { connect, next, routed, counted, switchboard } = await setUp(t, 'bot', { openMax: 3 })
  const silentOnes = [await connect(), await connect('GET /bot1'), await connect()]
  await until(() => switchboard.awaiting === 3)
  const gone = all(silentOnes[0]!)
  const arrived = next()
  await connect('GET /bot123:x/getMe HTTP/1.1\r\n')
  await arrived
  assert.equal(await gone, '')
  assert.equal(routed.length, 1)
  assert.equal(switchboard.awaiting, 2)
  assert.deepEqual(counted, ['connections_refused'])
  silentOnes[1]?.destroy()
  await until(() => switchboard.awaiting === 1)
  await connect()
  await until(() => switchboard.awaiting === 2)
  assert.equal(counted.length, 1)
})

test('if all connections wait for their workers, a new one is closed and the others are kept', async (t) => {
  const { connect, routed, counted, switchboard } = await setUp(t, 'bot', { openMax: 2 })
  for (const id of [123, 124]) await connect(`GET /bot${id}:x/getMe HTTP/1.1\r\n`)
  await until(() => routed.length === 2)
  const refused = await connect()
  assert.equal(await all(refused), '')
  assert.deepEqual(counted, ['connections_refused'])
  assert.equal(switchboard.awaiting, 0)
  assert.ok(routed.every(({ connection }) => connection.handle() !== undefined))
})

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve))
}

async function untilRead(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
}

function all(socket: Socket): Promise<string> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    socket.on('data', (chunk: Buffer) => chunks.push(chunk))
    socket.once('close', () => resolve(Buffer.concat(chunks).toString()))
  })
}

function skip(): void {
  // Nothing to do.
}

test('a switchboard that takes no more connections accepts those that were made before', async (t) => {
  const { connect, next, routed, switchboard } = await setUp(t)
  const accepted = await connect()
  await until(() => switchboard.awaiting === 1)
  // The kernel has made this connection, and this process has not accepted it yet.
  const madeBefore = connect('GET / HTTP/1.1\r\n')
  await new Promise((resolve) => process.nextTick(resolve))
  switchboard.takeNoMore()
  await madeBefore
  await until(() => routed.length === 1)
  const arrived = next()
  accepted.write('GET / HTTP/1.1\r\n')
  await arrived
  const late = connect()
  const isLate = Promise.race([
    late.then(() => false),
    new Promise((is) => setTimeout(is, 200, true)),
  ])
  assert(await isLate)
  switchboard.close()
  // The client tries again after a second, and finds nobody.
  await assert.rejects(late, { code: 'ECONNREFUSED' })
})
