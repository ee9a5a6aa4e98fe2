/** Producers that send pushes again that got no result (protocol.md §9): every key is stored once, whatever process is killed. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assertIdsGoOn } from '../support/producers/assert-ids-go-on.ts'
import {
  freshHints,
  type Hints,
  noHints,
  PushStreams,
  staleHints,
} from '../support/producers/push-streams.ts'
import { type PairResult, pairText, RawPushStream } from '../support/producers/raw-push-stream.ts'
import { onlyWithAll } from '../support/kit/drawn-runs.ts'
import { type RegisteredBot, type Server, startServer } from '../support/server/server.ts'
import { botOf } from '../support/server/bot-of.ts'
import { until } from '../support/kit/until.ts'

/** Registers two bots of each worker, others for each set. */
async function registerFour(server: Server, set = 0): Promise<RegisteredBot[]> {
  const bots: RegisteredBot[] = []
  for (const worker of [0, 1]) {
    for (const at of [0, 1]) bots.push(await server.register(botOf(worker, 2 * set + at)))
  }
  return bots
}

interface KeyedPair {
  readonly bot: RegisteredBot
  readonly seq: number
  readonly text: string
}

function pairsFor(bots: readonly RegisteredBot[], count: number): KeyedPair[] {
  return Array.from({ length: count }, (_, seq) => {
    const bot = bots[seq % bots.length]!
    const head = { bot_id: bot.botId, idempotency_key: `key-${seq}` }
    return { bot, seq, text: pairText(head, { message: { chat: { id: seq % 7 }, seq } }) }
  })
}

interface Stored {
  readonly update_id: number
  readonly message: { readonly seq: number }
}

/** Reads everything that a bot has pending, and confirms it page by page. */
async function readAll(server: Server, { token }: RegisteredBot): Promise<Stored[]> {
  const all: Stored[] = []
  for (let offset = 0; ; ) {
    const { body } = await server.call(token, 'getUpdates', { offset })
    const page: Stored[] = body.result
    const last = page.at(-1)
    if (last === undefined) return all
    all.push(...page)
    offset = last.update_id + 1
  }
}

/** Sends pairs in streams, opened again and again, until each has its result; pairs without one are sent again. */
class Producer {
  readonly #server: () => Server
  readonly #pairs: readonly KeyedPair[]
  readonly #hints: Hints
  readonly results = new Map<number, PairResult & { readonly duplicate?: boolean }>()
  /** Bots with a refused pair, and why it was refused; later pairs may have been accepted. */
  readonly refusedBots = new Map<number, string>()
  streams = 0
  readonly done: Promise<void>

  constructor(server: () => Server, pairs: readonly KeyedPair[], hints = noHints) {
    this.#server = server
    this.#pairs = pairs
    this.#hints = hints
    this.done = this.#run()
  }

  async #run(): Promise<void> {
    for (;;) {
      const left = this.#pairs.filter(({ seq }) => !this.results.has(seq))
      if (left.length === 0) return
      this.streams += 1
      const server = this.#server()
      const streams = new PushStreams(server, await this.#hints(server))
      const answers = left.map((pair) => this.#take(streams.of(pair.bot.botId).expect(), pair))
      // In pieces, so that a kill meets a stream that is still being sent.
      const ended = streams.ended.then(() => true)
      for (let at = 0; at < left.length; at += 100) {
        for (const { bot, text } of left.slice(at, at + 100)) streams.of(bot.botId).write(text)
        if ((await Promise.race([Promise.all(answers.slice(at, at + 100)), ended])) === true) break
      }
      await streams.end()
      await Promise.all(answers)
      // The processes may just have ended.
      if (this.results.size < this.#pairs.length) await until(() => this.#isReady(), 20_000)
    }
  }

  async #take(answer: Promise<PairResult | undefined>, { bot, seq }: KeyedPair): Promise<void> {
    const result = await answer
    if (result?.error !== undefined) this.refusedBots.set(bot.botId, result.error.code)
    else if (result !== undefined) this.results.set(seq, result)
  }

  async #isReady(): Promise<boolean> {
    return this.#server()
      .admin('GET', '/readyz')
      .then(
        ({ status }) => status === 200,
        () => false,
      )
  }
}

/** A producer, its own bots and what it pushes to them. */
interface Pushing {
  readonly bots: readonly RegisteredBot[]
  readonly pairs: readonly KeyedPair[]
  readonly producer: Producer
}

/** Starts a producer without hints, one with those of each moment, and one with old and wrong ones. */
function startThree(server: () => Server, count: number): Promise<readonly Pushing[]> {
  const starting = [noHints, freshHints, staleHints()].map(async (hints, set) => {
    const bots = await registerFour(server(), set)
    const pairs = pairsFor(bots, count)
    return { bots, pairs, producer: new Producer(server, pairs, hints) }
  })
  return Promise.all(starting)
}

/** Resolves when the first of them has so many results, so that none is done. */
function someHasResults(all: readonly Pushing[], count: number): Promise<void> {
  return until(() => all.some(({ producer }) => producer.results.size >= count), 20_000)
}

async function assertStoredOnce(server: Server, { bots, pairs, producer }: Pushing): Promise<void> {
  for (const bot of bots) {
    const stored = await readAll(server, bot)
    const own = pairs.filter((pair) => pair.bot === bot)
    assert.equal(stored.length, own.length)
    assertIdsGoOn(stored.map(({ update_id }) => update_id))
    for (const { update_id, message } of stored) {
      assert.equal(producer.results.get(message.seq)?.update_id, update_id)
    }
    const seqs = stored.map(({ message }) => message.seq)
    const inOrder = producer.refusedBots.has(bot.botId) ? seqs.toSorted((a, b) => a - b) : seqs
    assert.deepEqual(
      inOrder,
      own.map(({ seq }) => seq),
    )
  }
}

function push(server: Server, bot: RegisteredBot, text: string) {
  const path = `/v1/bots/${bot.botId}/updates`
  return server.admin('POST', path, { message: { text } }, { 'idempotency-key': 'k' })
}

test('one key stores one update, through either worker and across kill -9 of all processes', async (t) => {
  const before = await startServer(t, { workers: 2 })
  const bots = await registerFour(before)
  const ids: number[] = []
  for (const bot of bots) {
    const first = await push(before, bot, 'a')
    const updateId = first.body.update_id
    assert.deepEqual([first.status, first.text], [200, `{"update_id":${updateId}}`])
    ids.push(updateId)
  }
  const check = async (server: Server): Promise<void> => {
    for (const [at, bot] of bots.entries()) {
      const again = await push(server, bot, 'a')
      assert.equal(again.text, `{"update_id":${ids[at]},"duplicate":true}`)
      const other = await push(server, bot, 'b')
      assert.deepEqual([other.status, other.body.error.code], [409, 'IDEMPOTENCY_MISMATCH'])
      const stream = new RawPushStream(server)
      const head = { bot_id: bot.botId, idempotency_key: 'k' }
      assert.deepEqual(await stream.push(head, { message: { text: 'a' } }), again.body)
      await stream.end()
    }
  }
  await check(before)
  await before.kill()
  const after = await before.restart({ workers: 1 })
  await check(after)
  for (const bot of bots) assert.equal((await readAll(after, bot)).length, 1)
  // This includes updates that have left the queue.
  await check(after)
  const { text } = await after.admin('GET', '/metrics')
  assert.match(text, /^postbote_updates_duplicate_total 16$/m)
})

test('a producer that repeats pushes without a response stores each key once, however often workers are killed', async (t) => {
  const server = await startServer(t, { workers: 2 })
  const all = await startThree(() => server, 19_000)
  let kills = 0
  for (const at of [1_000, 6_000, 12_000]) {
    await someHasResults(all, at)
    const pids = server.workerPids()
    const pid = pids[kills % pids.length]
    if (pid !== undefined) process.kill(pid, 'SIGKILL')
    kills += 1
    await until(
      async () => server.workerPids().length === 2 && !server.workerPids().includes(pid ?? 0),
      20_000,
    )
  }
  for (const each of all) {
    const { producer } = each
    await producer.done
    assert(producer.streams > 1)
    t.diagnostic(
      `${producer.streams} streams, refused: ${[...producer.refusedBots.values()].join()}`,
    )
    await assertStoredOnce(server, each)
  }
})

test('a producer does so across kill -9 of all processes and with another number of workers', {
  skip: onlyWithAll('other tests here kill workers under a producer, and all processes'),
}, async (t) => {
  let server = await startServer(t, { workers: 2 })
  const all = await startThree(() => server, 1_600)
  for (const [at, workers] of [
    [500, 1],
    [1_000, 3],
  ] as const) {
    await someHasResults(all, at)
    await server.kill()
    server = await server.restart({ workers })
  }
  await Promise.all(all.map(({ producer }) => producer.done))
  for (const { producer } of all) assert(producer.streams >= 3)
  // The stored keys are read in the background from the first push on: the first repetition comes before that, the others
  // come during and after it.
  await server.kill()
  server = await server.restart({ workers: 2 })
  for (let nth = 0; nth < 3; nth++) {
    for (const { pairs, producer } of all) {
      const repeated = new Producer(() => server, pairs)
      await repeated.done
      for (const { seq } of pairs) {
        const { update_id: updateId, duplicate } = repeated.results.get(seq) ?? {}
        assert.deepEqual([updateId, duplicate], [producer.results.get(seq)?.update_id, true])
      }
    }
  }
  for (const each of all) await assertStoredOnce(server, each)
})

test('two streams that push the same keys at once get the same ids, and each key is stored once', async (t) => {
  const server = await startServer(t, { workers: 2 })
  const bots = await registerFour(server)
  const pairs = pairsFor(bots, 1_000)
  const producers = [new Producer(() => server, pairs), new Producer(() => server, pairs)]
  const other = new Producer(() => server, pairs.toReversed())
  await Promise.all([...producers, other].map(({ done }) => done))
  for (const { seq } of pairs) {
    const answers = [...producers, other].map((producer) => producer.results.get(seq))
    assert.equal(new Set(answers.map((answer) => answer?.update_id)).size, 1)
    assert.equal(answers.filter((answer) => answer?.duplicate === undefined).length, 1)
  }
  for (const bot of bots) assert.equal((await readAll(server, bot)).length, pairs.length / 4)
})
