import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryDirectory } from '../support/kit/temporary-directory.ts'
import { ask, client, readAll, startCluster } from './support.ts'
import { botOf } from '../support/server/bot-of.ts'

test('a request whose head or body stops arriving after the hand-off gets 408 after 10 s', async (t) => {
  const cluster = await startCluster(t)
  const startMs = Date.now()
  const head = await client(cluster.port('bot'))
  head.write(`GET /bot${botOf(0)}:x/echo HTTP/1.1\r\nHost:`)
  const answer = await readAll(head)
  assert.match(answer, /^HTTP\/1.1 408 [^]*Content-Type: application\/json\r\n[^]*"error_code":408/)
  assert.ok(Date.now() - startMs > 9_900)
  assert.ok(Date.now() - startMs < 13_000)
})

test('broken HTTP and oversized headers get an error in the form of the listener', async (t) => {
  const cluster = await startCluster(t)
  for (const [listener, path, form] of [
    ['bot', `/bot${botOf(0)}:x/echo`, '{"ok":false,"error_code":'],
    ['private', '/metrics', '{"error":{"code":"'],
  ] as const) {
    for (const [headers, status] of [
      ['Content-Length: x\r\n', 400],
      [`X-Big: ${'a'.repeat(70_000)}\r\n`, 431],
    ] as const) {
      const socket = await client(cluster.port(listener))
      socket.write(`POST ${path} HTTP/1.1\r\nHost: x\r\n${headers}\r\n`)
      const answer = await readAll(socket)
      assert.match(answer, new RegExp(`^HTTP/1.1 ${status} `))
      assert.ok(answer.includes(`\r\n\r\n${form}`), answer)
    }
  }
})

test('a request without a Host header or with an unknown expectation gets a normal response', async (t) => {
  const cluster = await startCluster(t)
  for (const headers of [
    'Connection: close\r\n',
    'Host: x\r\nExpect: x\r\nConnection: close\r\n',
  ]) {
    const socket = await client(cluster.port('bot'))
    socket.write(`GET /bot${botOf(0)}:x/echo HTTP/1.1\r\n${headers}\r\n`)
    assert.match(await readAll(socket), /^HTTP\/1.1 200 OK\r\n[^]*"worker":0/)
  }
})

test('headers of slightly less than 64 KiB are accepted', async (t) => {
  const cluster = await startCluster(t)
  const headers = { 'x-big': 'a'.repeat(65_000) }
  const answer = await ask({
    address: cluster.port('bot'),
    path: `/bot${botOf(0)}:x/large?bytes=2`,
    headers,
  })
  assert.equal(answer.status, 200)
})

test('without free descriptors the primary and the workers survive, and serve again when some are free', async (t) => {
  const file = new URL('./primary-process.js', import.meta.url).pathname
  const run = join(temporaryDirectory(t), 'run')
  const child = spawn(process.execPath, [file, run], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.after(() => child.kill('SIGKILL'))
  const [line] = await once(child.stdout, 'data')
  const { port, pids } = JSON.parse(String(line))
  // Not before: these processes are no bundles, and load hundreds of files at once.
  for (const pid of [child.pid, ...pids]) execFileSync('prlimit', [`--pid=${pid}`, '--nofile=80'])
  const request = `GET /bot${botOf(0)}:x/echo HTTP/1.1\r\nHost: x\r\n\r\n`
  for (const first of ['GET', request]) {
    // The second kind is opened slowly enough that the worker runs out of descriptors, and not the primary.
    const sockets: Socket[] = []
    while (sockets.length < 200) {
      for (let nth = 0; nth < 10; nth++) sockets.push(openQuietly(port, first))
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    t.after(() => sockets.forEach((socket) => socket.destroy()))
    await new Promise((resolve) => setTimeout(resolve, 500))
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => setTimeout(resolve, 200))
    for (const worker of [0, 1]) {
      const answer = await ask({ address: port, path: `/bot${botOf(worker)}:x/echo` })
      assert.equal(answer.status, 200)
      assert.equal(JSON.parse(answer.body).pid, pids[worker])
    }
  }
})

function openQuietly(port: number, first: string): Socket {
  const socket = connect({ port, host: '127.0.0.1' })
  socket.on('error', () => undefined)
  socket.resume()
  socket.write(first)
  return socket
}
