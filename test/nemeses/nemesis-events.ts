/**
 * What may happen to a cluster. Each event takes a node that has shards, at random, and lets everything be as before at its
 * end. The expected times are those of prototypes, with two nodes on an idle machine.
 */
import { signalAll, wait } from '../support/server/database.ts'
import type { Mend, NemesisEvent, NemesisWorld } from './nemesis-world.ts'

/** Longer than a node may stand still. */
const longFreezeMs = 4_000
/** Shorter than that, with the pause of a heartbeat. */
const shortFreezeMs = 1_200
/** Longer than a node takes to join again. */
const workersLaterMs = 2_000
const cutMs = 5_000
const standbyAwayMs = 2_000

async function killNode(world: NemesisWorld): Promise<Mend> {
  const name = await world.victim()
  await world.cluster.node(name).kill()
  return () => world.restartNode(name)
}

async function freezeNode(world: NemesisWorld, ms: number): Promise<void> {
  const name = await world.victim()
  world.signal(name, 'SIGSTOP')
  await wait(ms)
  world.signal(name, 'SIGCONT')
}

/** Its workers go on later than its primary process, which may have joined again by then. */
async function thawInParts(world: NemesisWorld): Promise<void> {
  const name = await world.victim()
  const node = world.cluster.node(name)
  const workers = node.workerPids()
  world.signal(name, 'SIGSTOP')
  await wait(longFreezeMs)
  signalAll(
    node.pids().filter((pid) => !workers.includes(pid)),
    'SIGCONT',
  )
  await wait(workersLaterMs)
  signalAll(workers, 'SIGCONT')
}

async function failOver(world: NemesisWorld): Promise<Mend> {
  const { pair } = world
  await pair.primary.crash()
  await pair.promote()
  return () => pair.rebuild()
}

export const nemesisEvents = {
  'node-kill': {
    name: 'node kill -9',
    expected: '1,676-1,829',
    movesShards: true,
    run: killNode,
  },
  'node-freeze': {
    name: 'node SIGSTOP 4 s',
    expected: '1,516-1,877',
    movesShards: true,
    run: (world) => freezeNode(world, longFreezeMs),
  },
  'node-thaw': {
    name: 'node SIGSTOP 4 s, its workers 6 s',
    expected: 'not measured',
    movesShards: true,
    run: thawInParts,
  },
  'node-pause': {
    name: 'node SIGSTOP 1.2 s',
    expected: '1,210-1,250',
    async run(world) {
      await freezeNode(world, shortFreezeMs)
      await wait(shortFreezeMs)
      if (world.logs.evictions() > 0)
        world.violations.push(`a node was evicted that stood still for ${shortFreezeMs} ms`)
    },
  },
  'node-cut': {
    name: 'node cut from the database, 5 s',
    expected: '1,532-2,130',
    async run(world) {
      const proxy = world.proxy(await world.victim())
      proxy.stall()
      await wait(cutMs)
      proxy.goOn()
    },
  },
  'primary-kill': {
    name: 'database primary kill -9, standby promoted',
    expected: '125-640',
    run: failOver,
  },
  'primary-freeze': {
    name: 'primary frozen, standby promoted, thawed after 4 s',
    expected: '1,040-1,434',
    async run({ pair }) {
      const former = pair.primary
      former.signal('SIGSTOP')
      await pair.promote()
      await wait(longFreezeMs)
      former.signal('SIGCONT')
      return () => pair.rebuild()
    },
  },
  'primary-restart': {
    name: 'primary crashes, restarts in place',
    expected: '3,840-5,040',
    async run({ pair }) {
      await pair.primary.crash()
      await pair.primary.up()
    },
  },
  'standby-away': {
    name: 'only the standby away for 2 s',
    expected: '3,530-4,230',
    async run({ pair }) {
      await pair.standby.down('SIGQUIT')
      await wait(standbyAwayMs)
      await pair.standby.up()
    },
  },
  'node-and-primary': {
    name: 'node and primary at once',
    expected: '1,275-1,904',
    movesShards: true,
    async run(world) {
      const name = await world.victim()
      const [rebuild] = await Promise.all([failOver(world), world.cluster.node(name).kill()])
      return async () => {
        await world.restartNode(name)
        await rebuild()
      }
    },
  },
  drain: {
    name: 'node drained, a new one joins',
    expected: '50 for each shard',
    movesShards: true,
    async run(world) {
      const name = await world.victim()
      const { pair, cluster } = world
      await pair.primary.query(
        `UPDATE node SET state = 'leaving' WHERE name = '${name}'`,
        cluster.database.name,
      )
      const code = await cluster.node(name).ended()
      if (code !== 0) world.violations.push(`a drained node ended with code ${code}`)
      await world.forgetNode(name)
      await world.startNode()
    },
  },
  'same-name': {
    name: 'a second node with the same name',
    expected: 'none',
    async run(world) {
      const name = await world.victim()
      const first = world.cluster.node(name)
      const workers = first.workerPids()
      const second = await world.cluster.start(name).then(
        () => 'started',
        (error: unknown) => String(error),
      )
      world.cluster.remember(name, first)
      if (!second.includes('the server ended with 1;'))
        world.violations.push(`the second node of one name: ${second}`)
      if (first.workerPids().join() !== workers.join() || world.logs.evictions() > 0)
        world.violations.push('a second node of the same name has disturbed the first one')
    },
  },
  'rolling-restart': {
    name: 'rolling restart of all nodes',
    expected: 'not measured',
    async run(world) {
      for (const name of world.names()) {
        const code = await world.cluster.node(name).stop()
        if (code !== 0) world.violations.push(`a node that was stopped ended with code ${code}`)
        await world.restartNode(name)
        await world.settled()
      }
    },
  },
} as const satisfies Readonly<Record<string, NemesisEvent>>

async function loseLeader(world: NemesisWorld, what: 'machine' | 'postgres'): Promise<Mend> {
  const { patroni } = world
  await patroni.loseLeader(what)
  return () => patroni.mend()
}

/** For a database that Patroni runs. */
export const patroniEvents = {
  'patroni-machine': {
    name: 'Patroni, the machine of the leader lost',
    expected: '16,780-17,340',
    run: (world) => loseLeader(world, 'machine'),
  },
  'patroni-postgres': {
    name: 'Patroni, PostgreSQL of the leader kill -9',
    expected: '2,725-6,290',
    run: (world) => loseLeader(world, 'postgres'),
  },
} as const satisfies Readonly<Record<string, NemesisEvent>>

export type NemesisName = keyof typeof nemesisEvents
