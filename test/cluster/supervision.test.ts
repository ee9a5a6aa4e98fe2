import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { systemClock } from '../../src/kit/clock.ts'
import { runPrimary } from '../../src/process/primary/primary.ts'
import { temporaryDirectory } from '../support/kit/temporary-directory.ts'
import {
  ask,
  client,
  MemoryShardTable,
  readAll,
  silent,
  startCluster,
  viaWorker0,
  workerFile,
} from './support.ts'
import { botOf } from '../support/server/bot-of.ts'
import { until } from '../support/kit/until.ts'
import { memoryEventLog } from '../support/server/memory-event-log.ts'

test('100 clients that wait for a worker when it is killed all get responses from its successor', async (t) => {
  const cluster = await startCluster(t)
  const [pid = 0] = cluster.primary.workerPids()
  process.kill(pid, 'SIGSTOP')
  const answers: Promise<string>[] = []
  for (let nth = 0; nth < 100; nth++) {
    const socket = await client(cluster.port('bot'))
    answers.push(readAll(socket))
    socket.write(
      `POST /bot${botOf(0)}:x/echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\n\r\nab`,
    )
  }
  await new Promise((resolve) => setTimeout(resolve, 100))
  process.kill(pid, 'SIGKILL')
  for (const answer of await Promise.all(answers)) {
    assert.match(answer, /^HTTP\/1.1 200 [\s\S]*"generation":2,[\s\S]*"bytes":2,/)
    assert.equal(answer.match(/HTTP\/1.1/g)?.length, 1)
  }
})

test('a dead worker is replaced without a pause, in its place and with the next generation', async (t) => {
  const startMs = performance.now()
  const cluster = await startCluster(t)
  const tookMs = performance.now() - startMs
  const path = `/bot${botOf(1)}:x/echo`
  const [, pid = 0] = cluster.primary.workerPids()
  const killedMs = performance.now()
  process.kill(pid, 'SIGKILL')
  await until(() => cluster.table.cleared.length === 1)
  const seen = JSON.parse((await ask({ address: cluster.port('bot'), path })).body)
  const backMs = performance.now() - killedMs
  // On a busy machine all workers start slowly.
  assert.ok(backMs < 2 * tookMs + 200, `${backMs} ms, and the first start took ${tookMs} ms`)
  assert.equal(seen.worker, 1)
  assert.equal(seen.generation, 2)
  assert.equal(seen.threads, '16')
  assert.deepEqual(cluster.table.cleared, [1])
  assert.deepEqual(cluster.table.owner(4), { worker: 1, generation: 2 })
  assert.deepEqual(cluster.table.owner(3), { worker: 0, generation: 1 })
  await until(() => cluster.table.allServed())
})

test('the other workers continue while one worker restarts repeatedly', async (t) => {
  const cluster = await startCluster(t)
  const killing = (async () => {
    for (let times = 0; times < 3; times++) {
      await until(() => (cluster.primary.workerPids()[1] ?? -1) > 0 && cluster.table.allServed())
      const pid = cluster.primary.workerPids()[1] ?? -1
      assert(pid > 0, 'the worker has a process')
      process.kill(pid, 'SIGKILL')
      await until(() => cluster.table.cleared.length === times + 1)
    }
  })()
  for (let times = 0; times < 50; times++) {
    const path = `/bot${botOf(0)}:x/echo`
    assert.equal((await ask({ address: cluster.port('bot'), path })).status, 200)
  }
  await killing
})

test('connections for a worker that hangs get a 503 after 4 s and are not served later', async (t) => {
  const cluster = await startCluster(t)
  const [pid = 0] = cluster.primary.workerPids()
  process.kill(pid, 'SIGSTOP')
  const startMs = Date.now()
  const path = `/v1/bots/${botOf(0)}/hang`
  const bots = Array.from({ length: 100 }, () =>
    ask({ address: cluster.port('bot'), path: `/bot${botOf(0)}:x/hang` }),
  )
  const priv = await ask({ address: cluster.port('private'), path })
  const [bot] = await Promise.all(bots)
  assert.ok(Date.now() - startMs >= 4_000)
  assert.ok(Date.now() - startMs < 6_000)
  assert.ok((await Promise.all(bots)).every(({ status }) => status === 503))
  assert.equal(bot?.headers['content-type'], 'application/json')
  assert.match(bot.body, /^{"ok":false,"error_code":503,"description":"Service Unavailable/)
  assert.equal(priv.status, 503)
  assert.match(priv.body, /^{"error":{"code":"STORE_UNAVAILABLE"/)
  process.kill(pid, 'SIGCONT')
  const hangs = await ask({ address: cluster.port('bot'), path: `/bot${botOf(0)}:x/hangs` })
  assert.equal(hangs.body, '{"open":0,"closed":0}')
})

test('bot methods are repeated once if their owner dies before it responds', async (t) => {
  const cluster = await startCluster(t)
  const died = join(cluster.runDir, 'died')
  const forwarded = await viaWorker0(cluster.port('bot'), `POST /bot${botOf(1)}:x/die?once=${died}`)
  assert.match(forwarded, /^HTTP\/1.1 200 [\s\S]*"generation":2/)
  const always = await viaWorker0(cluster.port('bot'), `POST /bot${botOf(1)}:x/die`)
  assert.match(always, /^HTTP\/1.1 503 [\s\S]*"ok":false,"error_code":503/)
})

test('of private calls only reads and pushes with a key are repeated, so nothing is done twice', async (t) => {
  const cluster = await startCluster(t)
  const port = cluster.port('private')
  const path = `/v1/bots/${botOf(1)}/die`
  const flag = (name: string): string => `${path}?once=${join(cluster.runDir, name)}`
  // Each request must meet a new death, and not the end of the previous one.
  const restarted = (times: number) =>
    until(() => cluster.table.cleared.length === times && cluster.table.allServed())
  const unknown = /^HTTP\/1.1 503 [\s\S]*{"error":{"code":"OUTCOME_UNKNOWN"/
  assert.match(await viaWorker0(port, `POST ${flag('push')}`), unknown)
  await restarted(1)
  assert.match(await viaWorker0(port, `DELETE ${flag('delete')}`), unknown)
  await restarted(2)
  assert.match(await viaWorker0(port, `GET ${flag('read')}`), /^HTTP\/1.1 200 /)
  await restarted(3)
  // Only a push uses the key.
  const key = 'Idempotency-Key: k\r\n'
  assert.match(await viaWorker0(port, `POST ${flag('keyed-call')}`, key), unknown)
  await restarted(4)
  const pushFlag = `/v1/bots/${botOf(1)}/updates?once=${join(cluster.runDir, 'keyed-push')}`
  assert.match(await viaWorker0(port, `POST ${pushFlag}`, key), /^HTTP\/1.1 200 /)
})

test('an owner that dies in the middle of its response breaks the connection of the client', async (t) => {
  const cluster = await startCluster(t)
  const answer = await viaWorker0(cluster.port('bot'), `GET /bot${botOf(1)}:x/half`)
  assert.match(answer, /^HTTP\/1.1 200 [\s\S]*Content-Length: 1000\r\n/)
  assert.ok(answer.length < 1_000)
})

test('a request that waits for a lost worker gets 503 if there is no successor within 4 s', async (t) => {
  const cluster = await startCluster(t)
  const [, pid = 0] = cluster.primary.workerPids()
  const keep = await client(cluster.port('private'))
  const answer = readAll(keep)
  keep.write(`GET /v1/bots/${botOf(0)}/echo HTTP/1.1\r\nHost: x\r\n\r\n`)
  await once(keep, 'data')
  // Nobody listens there any more, as when a worker is gone and its successor still opens its shards.
  rmSync(join(cluster.runDir, 'run', 'w1-link.sock'))
  const startMs = Date.now()
  keep.write(`POST /v1/bots/${botOf(1)}/echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
  assert.match((await answer).slice(1), /HTTP\/1.1 503 [\s\S]*"code":"STORE_UNAVAILABLE"/)
  assert.ok(Date.now() - startMs >= 3_900)
  assert.ok(Date.now() - startMs < 6_000)
  process.kill(pid, 0)
})

test('a server whose worker cannot start reports why and leaves nothing running', async (t) => {
  const failStart = 'expected the data directory to be writable'
  await assert.rejects(startCluster(t, { failStart }), { message: failStart })
})

test('an address in use is found before any worker starts', async (t) => {
  const cluster = await startCluster(t)
  const table = new MemoryShardTable()
  const starting = runPrimary({
    clock: systemClock,
    events: memoryEventLog(),
    log: silent,
    listeners: [{ listener: 'bot', address: { host: '127.0.0.1', port: cluster.port('bot') } }],
    workers: 2,
    shards: 8,
    runDir: join(temporaryDirectory(t), 'run'),
    workerFile,
    shardTable: table,
    settings: {},
  })
  await assert.rejects(starting, { code: 'EADDRINUSE' })
  assert.equal(table.owner(0), undefined)
})

test('on SIGTERM waiting polls get responses and the exit code is 0', async (t) => {
  const server = await startProcess(t)
  const polls = [botOf(0), botOf(1)].map((botId) =>
    ask({ address: server.port, path: `/bot${botId}:x/hang` }),
  )
  await hanging(server.port)
  server.process.kill('SIGTERM')
  for (const poll of polls) assert.equal((await poll).body, '{"drained":true}')
  assert.deepEqual(await server.ended, [0, null])
  await allGone(server.pids)
})

test('Ctrl-C, which reaches the whole process group, ends the server in the same order', async (t) => {
  const server = await startProcess(t)
  const poll = ask({ address: server.port, path: `/bot${botOf(0)}:x/hang` })
  const poll1 = ask({ address: server.port, path: `/bot${botOf(1)}:x/hang` })
  await hanging(server.port)
  for (const pid of server.pids) process.kill(pid, 'SIGINT')
  server.process.kill('SIGINT')
  assert.equal((await poll).body, '{"drained":true}')
  assert.equal((await poll1).body, '{"drained":true}')
  assert.deepEqual(await server.ended, [0, null])
})

test('a second signal ends the server immediately with code 1', async (t) => {
  const server = await startProcess(t)
  for (const pid of server.pids) process.kill(pid, 'SIGSTOP')
  server.process.kill('SIGTERM')
  await new Promise((resolve) => setTimeout(resolve, 100))
  server.process.kill('SIGTERM')
  assert.deepEqual(await server.ended, [1, null])
  for (const pid of server.pids) process.kill(pid, 'SIGCONT')
  await allGone(server.pids)
})

test('a signal that npm forwards, and that therefore arrives twice, counts once', async (t) => {
  const server = await startProcess(t)
  for (let times = 0; times < 3; times++) {
    server.process.kill('SIGINT')
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  assert.deepEqual(await server.ended, [0, null])
})

test('workers end by themselves when the primary is killed', async (t) => {
  const server = await startProcess(t)
  server.process.kill('SIGKILL')
  await server.ended
  await allGone(server.pids)
})

interface Server {
  readonly process: ChildProcess
  readonly port: number
  readonly pids: readonly number[]
  readonly ended: Promise<unknown>
}

async function startProcess(t: TestContext): Promise<Server> {
  const file = new URL('./primary-process.js', import.meta.url).pathname
  const child = spawn(process.execPath, [file, join(temporaryDirectory(t), 'run')], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(child, 'exit')
  t.after(() => child.kill('SIGKILL'))
  const [line] = await once(child.stdout, 'data')
  const { port, pids } = JSON.parse(String(line))
  return { process: child, port, pids, ended }
}

async function hanging(port: number): Promise<void> {
  for (const worker of [0, 1]) {
    const path = `/bot${botOf(worker)}:x/hangs`
    await until(async () => (await ask({ address: port, path })).body.startsWith('{"open":1'))
  }
}

async function allGone(pids: readonly number[]): Promise<void> {
  await until(() =>
    pids.every((pid) => {
      try {
        process.kill(pid, 0)
        return false
      } catch {
        return true
      }
    }),
  )
}
