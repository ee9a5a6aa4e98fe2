/**
 * Postbote beside other queues, each as its best client uses it: 1,000 ordered queues, events of 300 bytes, and every
 * push synced to disk before its response. CPU time is that of the server and of all clients, which have a column each.
 *
 * Producers and consumers are each one process. A peer whose server or client is not installed is left out with a line
 * that says so.
 */
import {
  type BenchCase,
  type CaseContext,
  type Contestant,
  type Sample,
  warmPace,
} from '../contestant.ts'
import { meterCpu } from '../cpu-meter.ts'
import type { Delays } from '../delays.ts'
import { HelperProcess } from '../helper-process.ts'
import type { IngestSample } from '../ingest-sample.ts'
import { missingFor, type PeerName, peerNamed, peerNames } from '../peers/all-peers.ts'
import type { PeerServer } from '../peers/peer.ts'
import type { PeerQuestion } from '../peers/peer-messages.ts'

const queues = 1_000
const ratePerSecond = 2_000
const waitMsMax = 60_000
/** Events that wait for their consumers at most, unless the peer needs too long for them. */
const waitingEvents = 20_000
const queuesText = `${queues.toLocaleString('en')} ordered queues, 300 B events`

export const peerCases: readonly BenchCase[] = [
  {
    ...peerCase(pushContestant),
    name: 'peers-push',
    title: `other queues: push, ${queuesText}; CPU of servers and clients`,
    charted: { kind: 'cpuRatio', against: 'Redis Streams' },
  },
  {
    ...peerCase(consumeContestant),
    name: 'peers-consume',
    title: `other queues: push, fetch and confirm, ${queuesText}; CPU of servers and clients`,
    charted: { kind: 'cpuRatio', against: 'Redis Streams' },
  },
  {
    ...peerCase(latencyContestant, steadyObstacle),
    name: 'peers-latency',
    title: `other queues: from push to consumer, ${queuesText}, ${ratePerSecond.toLocaleString('en')} a second`,
    charted: { kind: 'figure', figure: 'p50 ms' },
  },
]

/** A started peer with its clients. */
interface Opened {
  readonly name: PeerName
  readonly server: PeerServer
  readonly producer: HelperProcess
  /** Undefined if nothing is consumed. */
  readonly consumer: HelperProcess | undefined
}

function peerCase(
  contestantOf: (context: CaseContext, name: PeerName) => Promise<Contestant>,
  obstacleOf: (name: PeerName) => string | undefined = obstacle,
): Pick<BenchCase, 'operation' | 'targets' | 'isExtra' | 'pace' | 'open'> {
  return {
    pace: warmPace,
    operation: 'event',
    targets: [],
    isExtra: true,
    async open(context) {
      const contestants: Contestant[] = []
      for (const name of context.isAlone ? peerNames.slice(0, 1) : peerNames) {
        const why = obstacleOf(name)
        if (why === undefined) contestants.push(await contestantOf(context, name))
        else process.stdout.write(`${name} is left out: ${why}\n`)
      }
      return contestants
    },
  }
}

function obstacle(name: PeerName): string | undefined {
  const missing = missingFor(name)
  return missing === undefined
    ? undefined
    : `${missing} is not installed: ./scripts/install-bench-tools`
}

function steadyObstacle(name: PeerName): string | undefined {
  const isSlow = peerNamed(name).isSlow === true
  return isSlow ? `it consumes far fewer than ${ratePerSecond} events a second` : obstacle(name)
}

async function open(context: CaseContext, name: PeerName, isConsumed: boolean): Promise<Opened> {
  const server = await peerNamed(name).start(context, queues)
  const { address } = server
  const producer = new HelperProcess('peer-client', context, 'producer')
  const consumer = isConsumed ? new HelperProcess('peer-client', context, 'consumers') : undefined
  await consumer?.ask(asked({ kind: 'consume', peer: name, address, queues }))
  await producer.ask(asked({ kind: 'connect', peer: name, address, queues }))
  return { name, server, producer, consumer }
}

function pushContestant(context: CaseContext, name: PeerName): Promise<Contestant> {
  return contestant(context, name, false, async ({ producer }, durationMs) => {
    const countMax = Number.MAX_SAFE_INTEGER
    const { operations } = await producer.ask<IngestSample>(
      asked({ kind: 'push', durationMs, countMax }),
    )
    return { operations }
  })
}

function consumeContestant(context: CaseContext, name: PeerName): Promise<Contestant> {
  const { waitingMax = waitingEvents } = peerNamed(name)
  // While one half is pushed, the other one is consumed.
  const half = asked({ kind: 'push', durationMs: waitMsMax, countMax: waitingMax / 2 })
  return contestant(context, name, true, async ({ producer, consumer, server }, durationMs) => {
    const endMs = performance.now() + durationMs
    let operations = 0
    while (performance.now() < endMs) {
      const pushed = await producer.ask<IngestSample>(half)
      await consumer?.ask(asked({ kind: 'confirmed', count: operations }))
      operations += pushed.operations
    }
    await consumer?.ask(asked({ kind: 'confirmed', count: operations }))
    return { operations, settled: server.settled?.() }
  })
}

function latencyContestant(context: CaseContext, name: PeerName): Promise<Contestant> {
  return contestant(context, name, true, async ({ producer, consumer }, durationMs) => {
    const operations = await producer.ask<number>(
      asked({ kind: 'steady', ratePerSecond, durationMs }),
    )
    const delays = await consumer?.ask<Delays>(asked({ kind: 'delays', count: operations }))
    await consumer?.ask(asked({ kind: 'confirmed', count: operations }))
    const figures = {
      'p50 ms': delays?.p50Ms ?? Number.NaN,
      'p99 ms': delays?.p99Ms ?? Number.NaN,
      'max ms': delays?.maxMs ?? Number.NaN,
    }
    return { operations, figures }
  })
}

/** What a run did, and what is left to be done after the clock has stopped. */
interface Done extends Pick<Sample, 'operations' | 'figures'> {
  readonly settled?: Promise<void> | undefined
}

async function contestant(
  context: CaseContext,
  name: PeerName,
  isConsumed: boolean,
  work: (opened: Opened, durationMs: number) => Promise<Done>,
): Promise<Contestant> {
  const opened = await open(context, name, isConsumed)
  const { server, producer, consumer } = opened
  const metered = [server, producer, ...(consumer === undefined ? [] : [consumer])]
  const measured = async (durationMs: number): Promise<Sample> => {
    await consumer?.ask(asked({ kind: 'watch' }))
    const costs = meterCpu(metered, [])
    const startMs = performance.now()
    const { settled, ...done } = await work(opened, durationMs)
    const seconds = (performance.now() - startMs) / 1_000
    await settled
    return { ...done, seconds, ...costs() }
  }
  return {
    name,
    run: (durationMs) => {
      const run = (): Promise<Sample> => measured(durationMs)
      return server.profiled?.(run) ?? run()
    },
    residentBytes: () => server.residentBytes(),
    ...(server.profiles === undefined ? {} : { profiles: server.profiles }),
  }
}

/** Checks the type of a question. */
function asked(question: PeerQuestion): PeerQuestion {
  return question
}
