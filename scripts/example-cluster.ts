/**
 * `./examples/cluster/run`: a cluster on this machine. It has PostgreSQL with a synchronous standby, three nodes, and haproxy
 * with docs/run/cluster-haproxy.cfg. A producer pushes an update every 100 ms and a bot polls, both through haproxy only. Each
 * second prints a line:
 *
 *   accepted   pushes that got 200; each is repeated with its idempotency key until then
 *   received   of these, those that the bot has received
 *   gaps       of these, those that it has not received 5 s after they were accepted: 0, unless a poll waits
 *              in a frozen node
 *   twice      updates that it received twice: always 0
 *   shards     how many shards each node owns
 *
 * Commands are typed as lines. Everything that was started ends with this process. What starts the parts is the support of
 * the tests, so the database does not sync its disk.
 */
import { createInterface } from 'node:readline'
import { setTimeout as wait } from 'node:timers/promises'
import { startHaproxyBalancer } from '../test/support/programs/balancer.ts'
import { startCluster, type TestCluster } from '../test/support/server/cluster.ts'
import { signalAll } from '../test/support/server/database.ts'
import { postbote } from '../test/support/programs/postbote.ts'
import { haproxyObstacle } from '../test/support/programs/haproxy.ts'
import { Postgres, postgresObstacle } from '../test/support/server/postgres.ts'
import type { RegisteredBot, Server, TestEnd } from '../test/support/server/server.ts'

const help = `kill a      kills node a with all of its processes
freeze b    suspends node b
thaw b      lets node b continue
start a     starts node a again
drain c     hands over the shards of node c
log a       shows the last lines of the log of node a
primary     kills the primary of the database, promotes the standby, and makes a new standby
nodes       shows the nodes and their shards
quit        ends everything`
const name = 'postbote'
const shards = 16
const pushEveryMs = 100
const pushTimeoutMs = 10_000
const pollTimeoutS = 2
const gapMs = 5_000
const logLines = 20

class ExampleCluster {
  readonly #cluster: TestCluster
  /** What is removed at the end. */
  readonly #databases: Set<Postgres>
  readonly #states = new Map<string, string>()
  /** Nodes by name, also those that do not run. */
  readonly #nodes: Map<string, Server>
  #primary: Postgres
  #standby: Postgres
  #failingOver = Promise.resolve()

  static async start(ends: TestEnd[]): Promise<ExampleCluster> {
    const owner = { after: (one: TestEnd): void => void ends.push(one) }
    const primary = await Postgres.start()
    const databases = new Set([primary])
    owner.after(async () => void (await Promise.all([...databases].map((each) => each.remove()))))
    const standby = await primary.standby({ isSynchronous: true })
    databases.add(standby)
    await primary.newDatabase(name)
    const url = `postgres://postbote@127.0.0.1:${primary.port},127.0.0.1:${standby.port}/${name}`
    const env = { POSTBOTE_DATABASE: url }
    const { code, output } = await postbote(['database', 'init', `--shards=${shards}`], env)
    if (code !== 0) throw new Error(output)
    const cluster = await startCluster(owner, { name, url, env, postgres: primary })
    const example = new ExampleCluster({ cluster, databases, primary, standby })
    owner.after(() => example.#failingOver)
    return example
  }

  private constructor(parts: {
    readonly cluster: TestCluster
    readonly databases: Set<Postgres>
    readonly primary: Postgres
    readonly standby: Postgres
  }) {
    this.#cluster = parts.cluster
    this.#databases = parts.databases
    this.#primary = parts.primary
    this.#standby = parts.standby
    this.#nodes = new Map(['a', 'b', 'c'].map((each) => [each, parts.cluster.node(each)]))
    for (const each of this.#nodes.keys()) this.#states.set(each, 'running')
  }

  get servers(): readonly Server[] {
    return this.#cluster.nodes
  }

  async owners(): Promise<ReadonlyMap<string, readonly number[]>> {
    const owned = new Map<string, number[]>([...this.#nodes.keys()].map((each) => [each, []]))
    const text = 'SELECT s.shard, n.name FROM shard s LEFT JOIN node n USING (boot) ORDER BY shard'
    for (const { shard, name: owner } of await this.#primary.query(text, name)) {
      owned.get(String(owner))?.push(Number(shard))
    }
    return owned
  }

  /** Obeys a line that was typed, and returns what to print. */
  async obey(line: string): Promise<string> {
    const [command = '', nodeName = ''] = line.trim().split(/\s+/)
    if (command === 'nodes') return this.#show()
    if (command === 'primary') {
      this.#failingOver = this.#failingOver.then(() => this.#failOver())
      await this.#failingOver
      return 'a new standby is connected'
    }
    const node = this.#nodes.get(nodeName)
    if (node === undefined) return help
    if (command === 'log') return node.output().trimEnd().split('\n').slice(-logLines).join('\n')
    if (command === 'drain') {
      const { output } = await postbote(['node', 'drain', nodeName], this.#cluster.database.env)
      return output.trimEnd()
    }
    const state = await this.#change(command, nodeName, node)
    if (state === undefined) return help
    this.#states.set(nodeName, state)
    return `node ${nodeName} is ${state}`
  }

  /** Returns the new state of the node, or undefined if there is no such command. */
  async #change(command: string, nodeName: string, node: Server): Promise<string | undefined> {
    const isFrozen = this.#states.get(nodeName) === 'frozen'
    if (['freeze', 'thaw'].includes(command) && this.#states.get(nodeName) === 'killed')
      return 'killed'
    switch (command) {
      case 'kill':
        await node.kill()
        return 'killed'
      case 'freeze':
        signalAll(node.pids(), 'SIGSTOP')
        return 'frozen'
      case 'thaw':
        signalAll(node.pids(), 'SIGCONT')
        return 'running'
      case 'start':
        if (isFrozen) return 'frozen'
        this.#nodes.set(nodeName, await node.restart())
        return 'running'
      default:
        return undefined
    }
  }

  async #show(): Promise<string> {
    const owned = [...(await this.owners())]
    return owned
      .map(([each, own]) => `${each}: ${this.#states.get(each)}, shards ${own.join(' ') || 'none'}`)
      .join('\n')
  }

  async #failOver(): Promise<void> {
    const former = this.#primary
    await former.remove()
    this.#databases.delete(former)
    this.#primary = this.#standby
    await this.#primary.promote()
    process.stdout.write('the standby is the primary now\n')
    // The nodes know this port.
    this.#standby = await this.#primary.standby({ isSynchronous: true, port: former.port })
    this.#databases.add(this.#standby)
  }
}

/** The producer and the bot, which know nothing but the load balancer. */
class Clients {
  readonly #entrance: Server
  readonly #bot: RegisteredBot
  readonly #accepted = new Map<number, number>()
  readonly #received = new Set<number>()
  #twice = 0

  constructor(entrance: Server, bot: RegisteredBot) {
    this.#entrance = entrance
    this.#bot = bot
  }

  get summary(): string {
    const numbers = [...this.#accepted]
    const missing = numbers.filter(([number]) => !this.#received.has(number))
    const late = missing.filter(([, atMs]) => atMs < performance.now() - gapMs)
    const received = numbers.length - missing.length
    return `accepted ${numbers.length}, received ${received}, gaps ${late.length}, twice ${this.#twice}`
  }

  run(): Promise<unknown> {
    return Promise.all([this.#produce(), this.#poll()])
  }

  async #produce(): Promise<never> {
    const pushing = new Set<Promise<void>>()
    for (let number = 0; ; number++) {
      const push: Promise<void> = this.#push(number).finally(() => pushing.delete(push))
      pushing.add(push)
      await wait(pushEveryMs)
    }
  }

  async #push(number: number): Promise<void> {
    const url = `${this.#entrance.privateUrl}/v1/bots/${this.#bot.botId}/updates`
    const headers = {
      authorization: `Bearer ${this.#entrance.key}`,
      'idempotency-key': `example-${number}`,
    }
    const body = JSON.stringify({ message: { number } })
    while (!(await isOk(url, { method: 'POST', headers, body }))) await wait(pushEveryMs)
    this.#accepted.set(number, performance.now())
  }

  async #poll(): Promise<never> {
    let offset = 0
    for (;;) {
      try {
        const query = `offset=${offset}&timeout=${pollTimeoutS}`
        const response = await fetch(
          `${this.#entrance.botUrl}/bot${this.#bot.token}/getUpdates?${query}`,
          { signal: AbortSignal.timeout(pushTimeoutMs) },
        )
        const { result }: { readonly result: readonly Update[] } = JSON.parse(await response.text())
        for (const { update_id: id, message } of result) {
          if (this.#received.has(message.number)) this.#twice++
          this.#received.add(message.number)
          offset = id + 1
        }
      } catch {
        await wait(pushEveryMs)
      }
    }
  }
}

interface Update {
  readonly update_id: number
  readonly message: { readonly number: number }
}

/** Whether a request gets 200 in time. */
async function isOk(url: string, init: RequestInit): Promise<boolean> {
  try {
    const response = await fetch(url, { ...init, signal: AbortSignal.timeout(pushTimeoutMs) })
    await response.text()
    return response.ok
  } catch {
    return false
  }
}

const obstacle = postgresObstacle() ?? haproxyObstacle()
if (obstacle !== undefined) {
  console.error(obstacle)
  process.exit(1)
}
const ends: TestEnd[] = []
let isEnding = false

/** Ends what was started last first. */
async function end(code: number): Promise<void> {
  if (isEnding) return
  isEnding = true
  for (const each of ends.toReversed()) await each()
  process.exit(code)
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.once(signal, () => void end(0))
}

async function main(): Promise<void> {
  console.log('starting a database, three nodes and haproxy')
  const example = await ExampleCluster.start(ends)
  const owner = { after: (one: TestEnd): void => void ends.push(one) }
  const balancer = await startHaproxyBalancer(owner, example.servers)
  const [anyNode] = example.servers
  if (anyNode === undefined) throw new Error('there is no node')
  const entrance = anyNode.reachedAt(balancer)
  const clients = new Clients(entrance, await entrance.register())
  const lines = createInterface({ input: process.stdin })
  lines.on('line', (line) => {
    if (line.trim() === 'quit') void end(0)
    else example.obey(line).then(console.log, (error: unknown) => console.log(String(error)))
  })
  lines.once('close', () => void end(0))
  console.log(`bot API ${entrance.botUrl}, private API ${entrance.privateUrl}\n${help}`)
  void clients.run()
  for (;;) {
    await wait(1_000)
    const owned = await example.owners().then(
      (map) => [...map].map(([each, own]) => `${each} ${own.length}`).join(', '),
      () => 'unknown',
    )
    if (!isEnding) console.log(`${clients.summary}; shards: ${owned}`)
  }
}

main().catch(async (error: unknown) => {
  if (isEnding) return
  console.error(error)
  await end(1)
})
