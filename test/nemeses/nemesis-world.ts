/**
 * A cluster under load for nemeses: nodes of two workers behind a load balancer, each behind a proxy of its own in front of a
 * database primary with a synchronous standby, and bots in every shard that are pushed to, polled, and called by webhooks.
 *
 *     const world = await NemesisWorld.start(t, { seed: 1, log })
 *     await world.measure(event)      // a row of the table: how long nothing was acknowledged for some bot
 *     await world.end()               // asserts nothing: see `totals`
 */
import assert from 'node:assert/strict'
import { rendezvousRank } from '../../src/nodes/membership/rendezvous.ts'
import { TestCluster } from '../support/server/cluster.ts'
import { botsOfAllShards, signalAll, type TestDatabase } from '../support/server/database.ts'
import { postbote } from '../support/programs/postbote.ts'
import { joinTogether } from '../support/server/join-together.ts'
import type { EndingTest, RegisteredBot, Server } from '../support/server/server.ts'
import { Luck } from '../support/simulation/luck.ts'
import { until } from '../support/kit/until.ts'
import { Balancer } from './balancer.ts'
import { BotLedger } from './bot-ledger.ts'
import { DatabasePair } from './database-pair.ts'
import { staleWrites, startWitness, watchedEpochs } from './epoch-witness.ts'
import { type HookSink, startHookSink } from './hook-sink.ts'
import { Load } from './load.ts'
import { LogReader } from './log-reader.ts'
import { PatroniPair } from './patroni-pair.ts'
import { checkOver } from './ordered-pushes.ts'
import type { Pulse } from './pulse.ts'
import { type MoveCounts, ShardMoves } from './shard-moves.ts'
import { StallingProxy } from './stalling-proxy.ts'

const database = 'nemeses'
const shards = 8
/** Of each node. */
const workers = 2
const firstNodes = ['a', 'b', 'c']
const settledMsMax = 60_000

/** Work that ends the consequences of an event, such as a new start of what was killed. */
export type Mend = () => Promise<void>

export interface NemesisEvent {
  readonly name: string
  /** What the prototypes took, in ms. */
  readonly expected: string
  /** Whether shards change their owners. */
  readonly movesShards?: boolean
  /** Resolves when the cause is over, and not what follows from it. */
  run(world: NemesisWorld): Promise<Mend | void>
}

/** What one event has led to. Times are in ms. */
export interface Measurement {
  readonly event: string
  /** The longest time of any bot without an acknowledgement, and without a reception. */
  readonly acknowledgementMs: number
  readonly deliveryMs: number
  /** Nodes that were evicted. */
  readonly evictions: number
  /** How shards have moved, as clients at all nodes see it. */
  readonly moves: MoveCounts
}

export interface NemesisOptions {
  readonly seed: number
  readonly log: (line: string) => void
  /** Whether Patroni runs the database. */
  readonly hasPatroni?: boolean
  /** Fewer pushes, see `Load`. */
  readonly isCalm?: boolean
}

type AnyPair = DatabasePair | PatroniPair

export class NemesisWorld {
  readonly luck: Luck
  readonly cluster: TestCluster
  readonly balancer: Balancer
  readonly logs = new LogReader()
  readonly log: (line: string) => void
  /** What must not happen and concerns no bot. */
  readonly violations: string[] = []
  readonly #t: EndingTest
  readonly #pair: AnyPair
  readonly #proxies = new Map<string, StallingProxy>()
  #load: Load | undefined
  readonly #moves: ShardMoves
  #nextName = 0
  #epochs = { 'epochs written in': 0, 'written in after their end': 0 }

  constructor(t: EndingTest, pair: AnyPair, { seed, log }: NemesisOptions) {
    this.#t = t
    this.#pair = pair
    this.log = log
    this.luck = new Luck(seed)
    this.balancer = new Balancer(new Luck(seed + 1))
    t.after(() => this.balancer.close())
    this.cluster = new TestCluster(t, databaseOf(pair), {
      flags: ['--local', checkOver],
      envOf: (name) => ({ POSTBOTE_DATABASE: urlOf(this.proxy(name).ports) }),
    })
    this.#moves = new ShardMoves(this.cluster, () => this.names())
    t.after(() => this.#moves.end())
  }

  static async start(t: EndingTest, options: NemesisOptions): Promise<NemesisWorld> {
    const pair = await (options.hasPatroni === true ? PatroniPair : DatabasePair).start(t)
    const url = await pair.primary.newDatabase(database)
    const made = await postbote(['database', 'init', `--shards=${shards}`], {
      POSTBOTE_DATABASE: url,
    })
    assert.equal(made.code, 0, made.output)
    await startWitness(pair.primary, database)
    const world = new NemesisWorld(t, pair, options)
    await joinTogether([world.cluster.database], async () => {
      for (const name of firstNodes) await world.startNode(name)
    })
    await world.#startLoad(options.isCalm)
    return world
  }

  /** The database that events fail over themselves. */
  get pair(): DatabasePair {
    assert(this.#pair instanceof DatabasePair, 'Patroni runs the database')
    return this.#pair
  }

  get patroni(): PatroniPair {
    assert(this.#pair instanceof PatroniPair, 'Patroni does not run the database')
    return this.#pair
  }

  get load(): Load {
    assert(this.#load !== undefined, 'the load was not started')
    return this.#load
  }

  proxy(name: string): StallingProxy {
    const proxy = this.#proxies.get(name)
    assert(proxy !== undefined, `there is no proxy of ${name}`)
    return proxy
  }

  names(): readonly string[] {
    return [...this.#proxies.keys()]
  }

  /** Returns the name of a node that has shards, at random. */
  async victim(): Promise<string> {
    const owners = await this.cluster.owners()
    return this.luck.pick([...new Set(owners.filter((name) => name !== ''))].toSorted())
  }

  /** Starts a new node, with a name that no node had before unless one is given. */
  async startNode(name = `n${++this.#nextName}`): Promise<Server> {
    this.#proxies.set(name, await StallingProxy.start(this.#t, this.#pair.ports))
    const server = await this.cluster.start(name)
    this.#adopt(name, server)
    return server
  }

  /** Starts a node again, with its directory, after its end. */
  async restartNode(name: string): Promise<void> {
    const server = await this.cluster.node(name).restart()
    this.cluster.remember(name, server)
    this.#adopt(name, server)
  }

  /** The node has ended for good. */
  async forgetNode(name: string): Promise<void> {
    this.cluster.forget(name)
    this.balancer.remove(name)
    await this.proxy(name).close()
    this.#proxies.delete(name)
  }

  signal(name: string, signal: NodeJS.Signals): void {
    signalAll(this.cluster.node(name).pids(), signal)
  }

  /** Resolves when every shard has an owner that is alive, and all nodes are ready. */
  async settled(): Promise<void> {
    await until(async () => {
      if (!this.names().every((name) => this.balancer.isReady(name))) return false
      const owners = await this.cluster.owners()
      return owners.every((name) => this.#proxies.has(name))
    }, settledMsMax)
  }

  /** Resolves when each shard has the owner that it belongs to. With few shards, some node may have none. */
  async balanced(): Promise<void> {
    const nodes = this.names().map((name) => ({ name, workers }))
    const wanted = Array.from(
      { length: shards },
      (_, shard) => rendezvousRank(shard, nodes)[0]?.name,
    )
    await until(
      async () => JSON.stringify(await this.cluster.owners()) === JSON.stringify(wanted),
      settledMsMax,
    )
  }

  /** Lets an event happen, and resolves when everything is as before. */
  async measure(event: NemesisEvent): Promise<Measurement> {
    const { name } = event
    const { acknowledgements, deliveries } = this.load
    const startMs = performance.now()
    acknowledgements.begin()
    deliveries.begin()
    this.logs.begin(name)
    this.#moves.begin()
    this.load.event = name
    const owners = (await this.cluster.owners()).join(' ')
    this.log(`${new Date().toISOString()} ${name}, owners of the shards: ${owners}`)
    const mend = await event.run(this)
    await this.load.recovered()
    const measurement = {
      event: name,
      acknowledgementMs: Math.round(acknowledgements.longest().lengthMs),
      deliveryMs: Math.round(deliveries.longest().lengthMs),
      evictions: this.logs.evictions(),
      moves: await this.#moves.counts(),
    }
    if (event.movesShards === true && measurement.moves.toOwn === 0)
      this.violations.push(`${name}: no shard has moved, so nothing was tried`)
    const shown = [acknowledgements, deliveries].map((pulse) => this.#show(pulse, startMs))
    this.log(
      `${JSON.stringify(measurement)} without acknowledgement, delivery: ${shown.join('; ')}`,
    )
    await mend?.()
    await this.settled()
    this.logs.begin('between events')
    this.load.event = 'between events'
    return measurement
  }

  /** Ends the load, and returns all violations. */
  async end(): Promise<readonly string[]> {
    await this.load.end()
    const { ledgers, wrong } = this.load
    this.logs.begin('end')
    const { primary } = this.#pair
    const stale = await staleWrites(primary, database)
    this.#epochs = {
      'epochs written in': await watchedEpochs(primary, database),
      'written in after their end': stale.length,
    }
    return [
      ...this.violations,
      ...stale.map((epoch) => `stale epoch: a row was committed after the next claim of ${epoch}`),
      ...ledgers.flatMap(({ violations }) =>
        violations.map(({ rule, text }) => `${rule}: ${text}`),
      ),
      ...Array.from(wrong, ([text, count]) => `${count} times, ${text}`),
    ]
  }

  totals(): Readonly<Record<string, number>> {
    const sums = { accepted: 0, refused: 0, unknown: 0, received: 0, receivedAgain: 0 }
    const rules = {
      lost: 0,
      'stored twice': 0,
      'refused but stored': 0,
      order: 0,
      'wrong id': 0,
    }
    for (const { counts, violations } of this.load.ledgers) {
      for (const [what, count] of Object.entries(counts)) sums[what as keyof typeof sums] += count
      for (const { rule } of violations) rules[rule]++
    }
    return { ...sums, ...rules, ...this.#epochs }
  }

  /** Says which bot was silent for longest, and when, counted from the beginning of the event. */
  #show(pulse: Pulse, startMs: number): string {
    const { botId, fromMs, lengthMs } = pulse.longest()
    const nth = this.load.ledgers.findIndex((each) => each.botId === botId)
    const kind = nth < shards ? 'polling' : 'webhook'
    const [from, to] = [fromMs, fromMs + lengthMs].map((ms) => Math.round(ms - startMs))
    return `${kind} bot of shard ${nth % shards}, ${from}..${to}`
  }

  #adopt(name: string, server: Server): void {
    this.balancer.add(name, server)
    this.logs.add(name, server)
  }

  async #startLoad(isCalm: boolean | undefined): Promise<void> {
    const node = this.cluster.node('a')
    const polling = await botsOfAllShards(node)
    const hooked = await botsOfAllShards(node)
    const ledgers = [...polling, ...hooked].map(({ botId }) => new BotLedger(botId))
    const sink = await startHookSink(this.#t, {
      onDelivery: (botId, text) => this.#load?.receiveText(botId, text),
      onOverlap: (botId, deliveries) =>
        this.#load?.noteWrong(
          `${new Date().toISOString()} deliveries to bot ${botId} overlapped: ${JSON.stringify(deliveries)}`,
        ),
    })
    await Promise.all(hooked.map((bot) => setWebhook(node, bot, sink)))
    const { balancer } = this
    this.#load = new Load({ balancer, luck: this.luck, polling, isCalm }, ledgers)
    this.#t.after(() => this.load.stop())
    await this.load.recovered()
  }
}

async function setWebhook(node: Server, bot: RegisteredBot, sink: HookSink): Promise<void> {
  const { text, body } = await node.call(bot.token, 'setWebhook', { url: sink.url(bot.botId) })
  assert.equal(body.ok, true, text)
}

function urlOf(ports: readonly number[]): string {
  const hosts = ports.map((port) => `127.0.0.1:${port}`).join(',')
  return `postgres://postbote@${hosts}/${database}`
}

function databaseOf(pair: AnyPair): TestDatabase {
  const url = urlOf(pair.ports)
  return {
    name: database,
    url,
    env: { POSTBOTE_DATABASE: url },
    get postgres() {
      return pair.primary
    },
  }
}
