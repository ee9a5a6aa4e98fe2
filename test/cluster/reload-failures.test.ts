import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { workerRestartDelaysMs } from '../../src/process/primary/worker-place.ts'
import { ask, client, type Cluster, readAll, startCluster } from './support.ts'
import { botOf } from '../support/server/bot-of.ts'
import { childrenOf } from '../support/kit/processes-below.ts'
import { until } from '../support/kit/until.ts'

test('a reload replaces every worker, and waiting polls get responses', async (t) => {
  const cluster = await startCluster(t)
  const before = cluster.primary.workerPids()
  const poll = ask({ address: cluster.port('bot'), path: `/bot${botOf(0)}:x/hang` })
  await hangs(cluster)
  await cluster.primary.reload()
  const after = cluster.primary.workerPids()
  assert(after.every((pid) => pid > 0 && !before.includes(pid)))
  assert.equal(await generationOf(cluster, 0), 2)
  assert.equal(await generationOf(cluster, 1), 2)
  assert(cluster.table.allServed())
  assert.equal((await poll).status, 200)
})

test('a connection of a replaced worker gets its response from the successor and is then closed', async (t) => {
  const cluster = await startCluster(t)
  const socket = await client(cluster.port('bot'))
  const get = getOf('echo')
  socket.write(get)
  const [first] = await once(socket, 'data')
  assert.match(String(first), /Connection: keep-alive[\s\S]*"generation":1/)
  await cluster.primary.reload()
  const answer = readAll(socket)
  socket.write(get)
  assert.match(await answer, /^.?HTTP\/1.1 200 [\s\S]*Connection: close[\s\S]*"generation":2/)
})

test('no pipelined request is lost, and the last response closes the connection', async (t) => {
  const cluster = await startCluster(t)
  const socket = await client(cluster.port('bot'))
  socket.write(getOf('echo'))
  await once(socket, 'data')
  await cluster.primary.reload()
  const answer = readAll(socket)
  socket.write(getOf('slow?at=1') + getOf('slow?at=2') + getOf('slow?at=3'))
  const text = await answer
  assert.deepEqual(text.match(/"at":"\d"/g), ['"at":"1"', '"at":"2"', '"at":"3"'])
  assert.equal(text.match(/Connection: close/g)?.length, 1)
})

test('reloads that are requested during a reload become one reload after it', async (t) => {
  const cluster = await startCluster(t)
  const first = cluster.primary.reload()
  await Promise.all([first, cluster.primary.reload(), cluster.primary.reload()])
  assert.equal(await generationOf(cluster, 0), 3)
})

test('if a successor cannot start, the reload changes nothing and reports why', async (t) => {
  let settings: object = { failStart: 'expected a better disk' }
  const cluster = await startCluster(t, {}, () => settings)
  const before = cluster.primary.workerPids()
  await assert.rejects(cluster.primary.reload(), /expected a better disk/)
  assert.deepEqual(cluster.primary.workerPids(), before)
  assert.equal(await generationOf(cluster, 0), 1)
  // A worker that is lost later starts with the settings that work.
  process.kill(before[0] ?? 0, 'SIGKILL')
  await until(async () => (await generationOf(cluster, 0)) > 2)
  settings = {}
  await cluster.primary.reload()
  assert(cluster.primary.workerPids().every((pid) => !before.includes(pid)))
})

test('if a successor cannot open the shards, the old worker continues', async (t) => {
  const cluster = await startCluster(t, {}, () => ({ failOpen: 'damaged beyond repair' }))
  const before = cluster.primary.workerPids()
  const socket = await client(cluster.port('bot'))
  const get = getOf('echo')
  socket.write(get)
  await once(socket, 'data')
  await assert.rejects(cluster.primary.reload(), /damaged beyond repair/)
  assert.deepEqual(cluster.primary.workerPids(), before)
  assert.equal(await generationOf(cluster, 0), 1)
  // Its connections are kept alive again, and other workers reach it.
  socket.write(get)
  const [kept] = await once(socket, 'data')
  assert.match(String(kept), /Connection: keep-alive[\s\S]*"generation":1/)
  const other = await client(cluster.port('bot'))
  other.write(`GET /bot${botOf(1)}:x/echo HTTP/1.1\r\nHost: x\r\n\r\n`)
  await once(other, 'data')
  other.write(get)
  const [forwarded] = await once(other, 'data')
  assert.match(String(forwarded), /"worker":0,"generation":1/)
})

test('a worker that dies while its successor is being prepared is replaced by that successor', async (t) => {
  const cluster = await startCluster(t, {}, () => ({ slowStartMs: 500 }))
  const [pid = 0] = cluster.primary.workerPids()
  const reloading = cluster.primary.reload()
  process.kill(pid, 'SIGKILL')
  await reloading
  assert.equal(await generationOf(cluster, 0), 2)
  assert.equal(await generationOf(cluster, 1), 2)
})

test('a worker that dies while a reload waits for the workers replaced earlier gets one successor', async (t) => {
  let settings = {}
  const cluster = await startCluster(t, {}, () => settings)
  const first = await keptConnection(cluster)
  await cluster.primary.reload()
  const second = await keptConnection(cluster)
  await cluster.primary.reload()
  // The second death in a row is followed by a pause, in which the reload goes on.
  process.kill(cluster.primary.workerPids()[0] ?? 0, 'SIGKILL')
  await until(async () => (await generationOf(cluster, 0)) === 4)
  settings = { slowStartMs: 300 }
  const reloading = cluster.primary.reload()
  process.kill(cluster.primary.workerPids()[0] ?? 0, 'SIGKILL')
  const pauseEndMs = Date.now() + (workerRestartDelaysMs[1] ?? 0)
  first.destroy()
  await reloading
  second.destroy()
  // If the pause had started another process, it would be there now, and would stay.
  await until(() => Date.now() > pauseEndMs + 100)
  const own = (): Set<number> => new Set(cluster.primary.workerPids())
  await until(() => isDeepStrictEqual(new Set(childrenOf(process.pid)), own()))
})

test('a worker that hangs when it should leave is killed', async (t) => {
  const cluster = await startCluster(t, { hangingWorker: 0 }, () => ({}))
  await cluster.primary.reload()
  assert.equal(await generationOf(cluster, 0), 2)
  assert.equal(await generationOf(cluster, 1), 2)
})

test('a server that is stopped during a reload ends cleanly, with every process', async (t) => {
  const cluster = await startCluster(t, {}, () => ({ slowStartMs: 300 }))
  const pids = cluster.primary.workerPids()
  const reloading = cluster.primary.reload().catch((error: unknown) => String(error))
  await until(() => childrenOf(process.pid).length === 3)
  await cluster.primary.close()
  assert.match(String(await reloading), /ending|gone|ended/)
  await until(() => childrenOf(process.pid).length === 0)
  assert.equal(pids.length, 2)
  const left = readdirSync(join(cluster.runDir, 'run')).filter((name) => /sock\.\d/.test(name))
  assert.deepEqual(left, [])
})

test('SIGHUP starts a reload', async (t) => {
  const cluster = await startCluster(t)
  process.kill(process.pid, 'SIGHUP')
  await until(async () => (await generationOf(cluster, 1)) === 2)
})

/** Opens a connection that keeps worker 0 alive after it was replaced. */
async function keptConnection(cluster: Cluster): Promise<Socket> {
  const socket = await client(cluster.port('bot'))
  socket.write(getOf('echo'))
  await once(socket, 'data')
  return socket
}

function getOf(path: string): string {
  return `GET /bot${botOf(0)}:x/${path} HTTP/1.1\r\nHost: x\r\n\r\n`
}

async function generationOf(cluster: Cluster, worker: number): Promise<number> {
  const path = `/bot${botOf(worker)}:x/echo`
  return JSON.parse((await ask({ address: cluster.port('bot'), path })).body).generation
}

async function hangs(cluster: Cluster): Promise<void> {
  const path = `/bot${botOf(0)}:x/hangs`
  await until(async () =>
    (await ask({ address: cluster.port('bot'), path })).body.startsWith('{"open":1'),
  )
}
