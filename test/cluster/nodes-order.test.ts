/**
 * Producers at three nodes push to bots of all three without waiting for results, while shards move: to the node of the
 * producer, from it, and between two others. What was sent earlier gets a lower id. If a move is planned, no push fails.
 *
 * `EVENTS=join,drain,rejoin,drain,rejoin,reload` lets others happen, in this order. `LOGS=DIR` writes the logs of all nodes
 * there, and lists the steps of the moves that took longest.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkOver, OrderedPushes } from '../nemeses/ordered-pushes.ts'
import { LogReader } from '../nemeses/log-reader.ts'
import { MoveTimeline } from '../nemeses/move-timeline.ts'
import { type MoveCounts, ShardMoves } from '../nemeses/shard-moves.ts'
import { startCluster, type TestCluster } from '../support/server/cluster.ts'
import { botsOfAllShards, databaseWorld, signalAll, wait } from '../support/server/database.ts'
import { postbote } from '../support/programs/postbote.ts'
import type { Server } from '../support/server/server.ts'
import { until } from '../support/kit/until.ts'

const { EVENTS = 'join,pause,kill,drain', LOGS } = process.env
/** So many moves of an event are listed. */
const movesShown = 5

const world = databaseWorld()
/** Producers go on for so long after an event. */
const afterMs = 500
/** Shorter than the time after which a node is removed. */
const pauseMs = 1_200
const movedMsMax = 60_000

interface Event {
  readonly isPlanned: boolean
  /** How shards must move: otherwise the event has tried nothing. */
  readonly moves: readonly (keyof MoveCounts)[]
  run(cluster: TestCluster, pushes: OrderedPushes): Promise<void>
}

const events: Readonly<Record<string, Event>> = {
  join: {
    isPlanned: true,
    moves: ['fromOwn', 'others'],
    async run(cluster, pushes) {
      for (const name of ['b', 'c']) {
        await cluster.start(name)
        for (const node of cluster.nodes) await linked(node, pushes.bots)
        pushes.start(name)
      }
      await cluster.balanced(['a', 'b', 'c'])
    },
  },
  drain: {
    isPlanned: true,
    moves: ['toOwn', 'fromOwn'],
    async run(cluster) {
      const { database } = cluster
      await database.postgres.query(
        `UPDATE node SET state = 'leaving' WHERE name = 'c'`,
        database.name,
      )
      assert.equal(await cluster.node('c').ended(), 0)
      cluster.forget('c')
    },
  },
  rejoin: {
    isPlanned: true,
    moves: ['fromOwn', 'others'],
    async run(cluster) {
      await cluster.start('c')
      await cluster.balanced(['a', 'b', 'c'])
    },
  },
  reload: {
    isPlanned: true,
    moves: [],
    async run(cluster) {
      const { code, output } = await postbote(['reload', '--dir', cluster.node('a').dir])
      assert.equal(code, 0, output)
    },
  },
  restart: {
    isPlanned: true,
    moves: ['toOwn', 'fromOwn', 'others'],
    async run(cluster) {
      const node = cluster.node('c')
      cluster.remember('c', await node.restart())
      await cluster.balanced(['a', 'b', 'c'])
    },
  },
  pause: {
    isPlanned: false,
    moves: [],
    async run(cluster) {
      const pids = cluster.node('b').pids()
      signalAll(pids, 'SIGSTOP')
      await wait(pauseMs)
      signalAll(pids, 'SIGCONT')
      await wait(pauseMs)
    },
  },
  kill: {
    isPlanned: false,
    moves: ['toOwn', 'others'],
    async run(cluster) {
      await cluster.forget('b').kill()
      await until(
        async () => !(await cluster.owners()).some((name) => name === 'b' || name === ''),
        movedMsMax,
      )
    },
  },
}

test('pushes of one producer keep their order while shards move, and none fails if the move is planned', {
  skip: world.obstacle,
}, async (t) => {
  const database = await world.database('ordered')
  const cluster = await startCluster(t, database, { nodes: ['a'], flags: [checkOver] })
  const bots = (await botsOfAllShards(cluster.node('a'))).map(({ botId }) => botId)
  const names = (): string[] => ['a', 'b', 'c'].filter((name) => cluster.has(name))
  const pushes = new OrderedPushes({
    bots,
    nodeOf: (name) => (cluster.has(name) ? cluster.node(name) : undefined),
  })
  t.after(() => pushes.end())
  const moves = new ShardMoves(cluster, names)
  t.after(() => moves.end())
  const logs = new LogReader()
  const timeline = new MoveTimeline()
  const seen = new Set<Server>()
  const watch = (): void => {
    for (const name of names().filter((each) => !seen.has(cluster.node(each)))) {
      const server = cluster.node(name)
      seen.add(server)
      logs.add(name, server)
      timeline.add(server)
    }
  }
  t.after(() => {
    watch()
    if (LOGS !== undefined) logs.write(LOGS)
  })
  pushes.start('a')
  for (const name of EVENTS.split(',')) {
    const event = events[name]
    assert(event !== undefined, `there is no event ${name}`)
    pushes.begin()
    moves.begin()
    watch()
    logs.begin(name)
    timeline.begin()
    await event.run(cluster, pushes)
    await cluster.balanced()
    await wait(afterMs)
    const { pairs, calls } = pushes
    const moved = await moves.counts()
    watch()
    const { lengthMs } = pushes.acknowledgements.longest()
    const [silentMs, evictions] = [Math.round(lengthMs), logs.evictions()]
    t.diagnostic(JSON.stringify({ name, moves: moved, pairs, calls, silentMs, evictions }))
    const longest = LOGS === undefined ? [] : timeline.moves().slice(0, movesShown)
    for (const move of longest) t.diagnostic(JSON.stringify(move))
    assert.equal(pairs.inversions + calls.inversions, 0, name)
    if (event.isPlanned) assert.deepEqual([pairs.refused, calls.refusedEarly], [{}, 0], name)
    for (const way of event.moves) assert(moved[way] > 0, `${name} moved no shard: ${way}`)
  }
})

/**
 * Resolves when a node has called the others and pushes through it succeed. On a busy machine the first handshakes of a
 * process, whose code is not compiled yet, take more than the time of one call.
 */
async function linked(node: Server, bots: readonly number[]): Promise<void> {
  const paths = bots.map((botId) => `/v1/bots/${botId}/updates`)
  await until(async () => {
    const nodes = await node.admin('GET', '/v1/nodes')
    const calls = paths.map((path) => node.admin('POST', path, { message: {} }))
    return [nodes, ...(await Promise.all(calls))].every(({ status }) => status === 200)
  }, movedMsMax)
}
