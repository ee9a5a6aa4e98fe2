/** The client for producers at the real server: every acknowledged update is stored once, whatever process ends. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import {
  PostboteClient,
  type PushItem,
  type Retry,
} from '../../clients/typescript/postbote-client.ts'
import { assertIdsGoOn } from '../support/producers/assert-ids-go-on.ts'
import { readAll } from '../support/producers/read-all.ts'
import { onlyWithAll } from '../support/kit/drawn-runs.ts'
import { type RegisteredBot, type Server, startServer } from '../support/server/server.ts'
import { botOf } from '../support/server/bot-of.ts'
import { until } from '../support/kit/until.ts'
import { outputOf } from '../support/programs/postbote.ts'

interface NumberedItem extends PushItem {
  readonly seq: number
}

/** Registers two bots of each worker. */
function registerFour(server: Server): Promise<RegisteredBot[]> {
  const ids = [0, 1].flatMap((worker) => [botOf(worker, 0), botOf(worker, 1)])
  return Promise.all(ids.map((botId) => server.register(botId)))
}

function clientOf(
  t: TestContext,
  server: Server,
  onRetry?: (retry: Retry) => void,
): PostboteClient {
  const client = new PostboteClient({
    url: server.privateUrl,
    key: server.key,
    // Far more failures in a row than occur here: this test is about what is stored.
    retries: 1_000,
    retryDelayMsMax: 1_000,
    ...(onRetry === undefined ? {} : { onRetry }),
  })
  t.after(() => client.close())
  return client
}

test('forty thousand updates are stored once and in order while workers are killed, reloaded and restarted', {
  skip: onlyWithAll(
    'idempotency.test.ts kills workers under a producer, and the next test all processes',
  ),
}, async (t) => {
  const count = 40_000
  let server = await startServer(t, { workers: 2 })
  const bots = await registerFour(server)
  const retries: Retry[] = []
  const client = clientOf(t, server, (retry) => retries.push(retry))
  const killOne = async (nth: number): Promise<void> => {
    const pid = server.workerPids()[nth] ?? 0
    process.kill(pid, 'SIGKILL')
    await until(async () => (await isReady(server)) && !server.workerPids().includes(pid), 30_000)
  }
  const events: readonly (() => Promise<unknown>)[] = [
    () => killOne(0),
    () => killOne(1),
    () => outputOf(['reload', '--dir', server.dir]),
    async () => {
      await server.kill()
      server = await server.restart({ workers: 1 })
    },
    async () => {
      server = await server.restart({ workers: 2 })
    },
  ]
  let event: Promise<unknown> = Promise.resolve()
  async function* items(): AsyncGenerator<NumberedItem> {
    for (let seq = 0; seq < count; seq++) {
      const at = seq / Math.floor(count / (events.length + 1))
      if (Number.isInteger(at) && at > 0) {
        // One event after the other, each while updates are under way.
        await event
        event = events[at - 1]?.() ?? event
      }
      const { botId } = bots[seq % bots.length]!
      yield { seq, botId, update: { message: { chat: { id: seq % 7 }, seq } } }
    }
  }
  const ids = new Map<number, number>()
  for await (const { item, result, error } of client.pushAll(items())) {
    assert.equal(error, undefined)
    assert(result !== undefined && !result.isFiltered)
    assert.equal(item.seq, ids.size)
    ids.set(item.seq, result.updateId)
  }
  await event
  const kinds = new Set(retries.map(({ error, botId }) => `${error.code} ${botId ?? ''}`))
  t.diagnostic(`${retries.length} retries: ${[...kinds].join(', ')}`)
  assert(retries.length > 0)
  for (const [nth, bot] of bots.entries()) {
    const stored = await readAll(server, bot)
    assert.equal(stored.length, count / bots.length)
    assertIdsGoOn(stored.map(({ id }) => id))
    const seqs = stored.map(({ id, message: { seq = -1 } }) => {
      assert.equal(ids.get(seq), id)
      return seq
    })
    // An update that was refused for a moment may have been overtaken by others that were under way with it.
    const isOvertaken = retries.some(({ botId }) => botId === bot.botId)
    const inOrder = isOvertaken ? seqs.toSorted((a, b) => a - b) : seqs
    assert(inOrder.every((seq, at) => seq === nth + at * bots.length))
  }
})

test('the pairs of a stream for the bots of a worker are not seen by the other one', async (t) => {
  const server = await startServer(t, { workers: 2 })
  const bots = await Promise.all([0, 1].map((worker) => server.register(botOf(worker))))
  const { body } = await server.admin('GET', '/v1/nodes')
  const stream = clientOf(t, server).openStream()
  const push = (worker: number) => {
    const { botId } = bots[worker] ?? assert.fail()
    return stream.push(botId, { message: {} })
  }
  await Promise.all([push(0), push(1)])
  for (const worker of [0, 1]) {
    const other = body.nodes[0].workers[1 - worker].pid
    process.kill(other, 'SIGSTOP')
    try {
      // Over one connection, the pairs of one of the two would wait.
      for (let nth = 0; nth < 4; nth++) assert.equal((await push(worker)).isFiltered, false)
    } finally {
      process.kill(other, 'SIGCONT')
    }
  }
})

test('a client sends a server that stands still no more pairs than may be under way', async (t) => {
  const server = await startServer(t, { workers: 2 })
  const { botId } = await server.register()
  const client = clientOf(t, server)
  const text = 'x'.repeat(100_000)
  const bytesMax = 4 * 2 ** 20
  const pids = server.pids()
  for (const pid of pids) process.kill(pid, 'SIGSTOP')
  let read = 0
  let isOver = false
  function* items(): Generator<PushItem> {
    // oxlint-disable-next-line eslint/no-unmodified-loop-condition -- it is, below
    while (!isOver) {
      yield { botId, update: { message: { text } } }
      read += 1
    }
  }
  const results = client.pushAll(items(), { bytesMax })
  const first = results.next()
  const readMax = Math.ceil(bytesMax / text.length) + 1
  await until(() => read >= readMax - 2)
  // After this many turns, everything that could happen has happened.
  for (let turn = 0; turn < 1_000; turn++) await new Promise((resolve) => setImmediate(resolve))
  isOver = true
  assert(read <= readMax, `${read}, expected at most ${readMax}`)
  for (const pid of pids) process.kill(pid, 'SIGCONT')
  assert.equal((await first).done, false)
  let stored = 1
  for await (const { error } of results) {
    assert.equal(error, undefined)
    stored += 1
  }
  assert.equal(stored, read)
})

test('single pushes continue after a kill of all processes, and each is stored once', async (t) => {
  let server = await startServer(t, { workers: 2 })
  const bots = await registerFour(server)
  const client = clientOf(t, server)
  const ids = new Map<number, number>()
  const push = async (seq: number): Promise<void> => {
    const result = await client.push(bots[seq % bots.length]!.botId, { message: { seq } })
    assert(!result.isFiltered)
    ids.set(seq, result.updateId)
  }
  const pushed = Promise.all(Array.from({ length: 2_000 }, (_, seq) => push(seq)))
  await until(() => ids.size > 100)
  await server.kill()
  server = await server.restart()
  await pushed
  for (const bot of bots) {
    const stored = await readAll(server, bot)
    assert.equal(stored.length, 500)
    for (const { id, message } of stored) assert.equal(ids.get(message['seq'] ?? -1), id)
  }
})

async function isReady(server: Server): Promise<boolean> {
  return server.admin('GET', '/readyz').then(
    ({ status }) => status === 200,
    () => false,
  )
}
