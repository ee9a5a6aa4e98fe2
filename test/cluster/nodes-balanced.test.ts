/**
 * Clients of three nodes that know only a load balancer, with the documented configurations, while a node is drained, which
 * fails nothing, and then another one is killed. Each kind of client has a bot in every shard, and pushes to it in one of three
 * ways:
 *
 *   single     without a key, which is never repeated: 200, or a 503 that says whether the push may be stored
 *   keyed      with an idempotency key: 200, though maybe late
 *   streamed   as pairs with keys of one NDJSON stream, which the producer opens again if it breaks
 *
 * All polls get 200. Every update that was accepted is received once, in order.
 */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import {
  type Balancer,
  startHaproxyBalancer,
  startNginxBalancer,
} from '../support/programs/balancer.ts'
import { startBalancedCluster, type TestCluster } from '../support/server/cluster.ts'
import { botsOfAllShards, databaseWorld, wait } from '../support/server/database.ts'
import { postbote } from '../support/programs/postbote.ts'
import { haproxyObstacle } from '../support/programs/haproxy.ts'
import { nginxObstacle } from '../support/programs/nginx.ts'
import { NginxClient } from '../support/programs/nginx-client.ts'
import { pushHost } from '../support/programs/tls-proxy.ts'
import { PushLedger } from '../support/producers/push-ledger.ts'
import { type PairResult, RawPushStream } from '../support/producers/raw-push-stream.ts'
import type { RegisteredBot, Server } from '../support/server/server.ts'
import { until } from '../support/kit/until.ts'

const world = databaseWorld()
const beforeMs = 1_000
const afterMs = 2_000
const pauseMs = 50
const pollTimeoutS = 5
const settledMsMax = 60_000

const balancers = [
  ['nginx', nginxObstacle(), startNginxBalancer],
  ['haproxy', haproxyObstacle(), startHaproxyBalancer],
] as const

test('behind a load balancer, no request fails while a node is drained, and no poll and no push with a key while one is killed', {
  skip: world.obstacle,
}, async (t) => {
  const database = await world.database('balanced')
  const cluster = await startBalancedCluster(t, database, { flags: [`--admin-host=${pushHost}`] })
  // One kill serves the tests of both.
  const sides = new Map<string, Side>()
  for (const [name, obstacle, start] of balancers) {
    if (obstacle !== undefined) continue
    sides.set(name, await Side.start(t, cluster, await start(t, cluster.nodes)))
  }
  await wait(beforeMs)
  const drained = await postbote(['node', 'drain', 'c'], database.env)
  assert.equal(drained.code, 0, drained.output)
  assert.equal(await cluster.forget('c').ended(), 0)
  await wait(beforeMs)
  for (const side of sides.values()) side.assertNoneFailed()
  await cluster.forget('b').kill()
  for (const [name, obstacle] of balancers) {
    await t.test(name, { skip: obstacle ?? false }, (each) => sides.get(name)?.check(each))
  }
})

/** The clients of one load balancer. */
class Side {
  readonly #balancer: Balancer
  readonly #single: readonly PushLedger[]
  readonly #keyed: readonly OrderedClient[]
  readonly #stream: KeyedStream

  static async start(t: TestContext, cluster: TestCluster, balancer: Balancer): Promise<Side> {
    const entrance = cluster.node('a').reachedAt(balancer)
    const bots = [
      await botsOfAllShards(entrance),
      await botsOfAllShards(entrance),
      await botsOfAllShards(entrance),
    ]
    return new Side(t, { entrance, balancer, bots })
  }

  private constructor(
    t: TestContext,
    { entrance, balancer, bots: [forSingle = [], forKeyed = [], forStream = []] }: SideParts,
  ) {
    const client = new NginxClient(balancer.tls)
    const stream = new KeyedStream(() => new RawPushStream(entrance))
    // Hooks run in order: clients that push to the stream end after it.
    t.after(() => stream.end())
    this.#balancer = balancer
    this.#stream = stream
    this.#single = forSingle.map((bot) => new PushLedger(t, bot, () => entrance))
    this.#keyed = [
      ...forKeyed.map((bot) => ({ bot, push: keyedPush(client, entrance.key, bot) })),
      ...forStream.map((bot) => ({ bot, push: streamedPush(stream, bot) })),
    ].map((each) => new OrderedClient(t, client, each))
    t.after(() => client.close())
  }

  assertNoneFailed(): void {
    for (const { counts, failedPolls } of this.#single) {
      assert.match(counts, /, 0 refused, 0 unknown$/)
      assert.deepEqual(failedPolls, [])
    }
  }

  async check(t: TestContext): Promise<void> {
    await Promise.all(this.#single.map((each) => each.recovered()))
    await wait(afterMs)
    await Promise.all([...this.#single, ...this.#keyed].map((each) => each.check()))
    for (const each of this.#single) assert.deepEqual(each.failedPolls, [])
    t.diagnostic(this.#single.map(({ counts }) => counts).join('; '))
    t.diagnostic(this.#keyed.map(({ summary }) => summary).join('; '))
    t.diagnostic(`${this.#stream.opened} streams`)
    const log = this.#balancer.log()
    for (const { bot } of this.#keyed) {
      assert.match(log, new RegExp(`\\bbot${bot.botId}\\b`))
      const secret = bot.token.slice(bot.token.indexOf(':') + 1)
      assert(!log.includes(secret), 'no token gets into the log')
    }
  }
}

interface SideParts {
  readonly entrance: Server
  readonly balancer: Balancer
  /** A bot of each shard for each kind of client. */
  readonly bots: readonly (readonly RegisteredBot[])[]
}

/** Pushes update number n, and repeats that only as a producer must. Resolves when it is accepted. */
type Push = (number: number) => Promise<void>

function keyedPush(client: NginxClient, key: string, { botId }: RegisteredBot): Push {
  return async (number) => {
    const { status, bytes } = await client.push(key, {
      path: `/v1/bots/${botId}/updates`,
      headers: { 'idempotency-key': `${botId}-${number}` },
      body: { message: { number } },
    })
    assert.equal(status, 200, bytes.toString())
  }
}

function streamedPush(stream: KeyedStream, { botId }: RegisteredBot): Push {
  return async (number) => {
    const result = await stream.push(botId, number)
    assert.equal(typeof result.update_id, 'number', JSON.stringify(result))
  }
}

/** A stream that is opened again when it breaks; then pairs without a result are sent again. */
class KeyedStream {
  readonly #open: () => RawPushStream
  #stream: RawPushStream
  #isOver = false
  opened = 1

  constructor(open: () => RawPushStream) {
    this.#open = open
    this.#stream = open()
  }

  async push(botId: number, number: number): Promise<PairResult> {
    for (;;) {
      const stream = this.#stream
      const head = { bot_id: botId, idempotency_key: `${botId}-${number}` }
      const result = await stream.push(head, { message: { number } })
      if (result !== undefined) return result
      assert(!this.#isOver, 'the test has ended')
      if (stream === this.#stream) {
        this.#stream = this.#open()
        this.opened++
      }
      await wait(pauseMs)
    }
  }

  end(): void {
    this.#isOver = true
    this.#stream.destroy()
  }
}

/** Pushes the numbers from 0 on to one bot, one after the other, and polls it. */
class OrderedClient {
  readonly bot: RegisteredBot
  readonly #push: Push
  readonly #client: NginxClient
  readonly #received: number[] = []
  readonly #failures: string[] = []
  readonly #running: readonly [Promise<void>, Promise<void>]
  #pushed = 0
  #slowestMs = 0
  #isPushing = true
  #isPolling = true

  constructor(
    t: TestContext,
    client: NginxClient,
    { bot, push }: { readonly bot: RegisteredBot; readonly push: Push },
  ) {
    this.bot = bot
    this.#client = client
    this.#push = push
    this.#running = [this.#pushAll(), this.#pollAll()]
    t.after(() => this.#end())
  }

  get summary(): string {
    return `${this.#pushed} in order, the slowest after ${Math.round(this.#slowestMs)} ms`
  }

  async check(): Promise<void> {
    this.#isPushing = false
    await this.#running[0]
    await until(() => this.#received.length >= this.#pushed, settledMsMax)
    this.#isPolling = false
    assert.deepEqual(this.#failures, [])
    assert.deepEqual(
      this.#received,
      Array.from({ length: this.#pushed }, (_, number) => number),
    )
  }

  async #end(): Promise<void> {
    this.#isPushing = false
    this.#isPolling = false
    await Promise.all(this.#running)
  }

  async #pushAll(): Promise<void> {
    while (this.#isPushing) {
      const startMs = performance.now()
      try {
        await this.#push(this.#pushed)
        this.#pushed++
      } catch (error) {
        this.#failures.push(`push: ${String(error)}`)
        this.#pushed++
      }
      this.#slowestMs = Math.max(this.#slowestMs, performance.now() - startMs)
      await wait(pauseMs)
    }
  }

  async #pollAll(): Promise<void> {
    let offset = 0
    while (this.#isPolling) {
      const parameters = { offset, timeout: pollTimeoutS }
      try {
        const { status, bytes, body } = await this.#client.bot(
          this.bot.token,
          'getUpdates',
          parameters,
        )
        assert.equal(status, 200, bytes.toString())
        for (const { update_id: id, message } of body.result) {
          assert(id >= offset)
          offset = id + 1
          this.#received.push(message.number)
        }
      } catch (error) {
        this.#failures.push(`poll: ${String(error)}`)
        await wait(pauseMs)
      }
    }
  }
}
