/**
 * Postbote beside other queues, each as its best client uses it: 1,000 ordered queues, events of 300 bytes, and every
 * push synced to disk before its response. CPU time is that of the server and of all clients.
 *
 * Producers and consumers are each one process. A peer whose server or client is not installed is left out with a line
 * that says so.
 */
import type { BenchCase, CaseContext, Contestant } from '../contestant.ts'
import { meterCpu, type Metered } from '../cpu-meter.ts'
import type { Delays } from '../delays.ts'
import { HelperProcess } from '../helper-process.ts'
import type { IngestSample } from '../ingest-sample.ts'
import { missingFor, type PeerName, peerNamed, peerNames } from '../peers/all-peers.ts'
import type { PeerServer } from '../peers/peer.ts'
import type { PeerQuestion } from '../peers/peer-messages.ts'

const queues = 1_000
const ratePerSecond = 2_000
const waitMsMax = 60_000
/** Of one run, unless the peer needs too long for them. */
const consumedEvents = 20_000
/** Longer, so that the p99 of a round rests on more than a few events. */
const steadyLengthFactor = 2
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
): Pick<BenchCase, 'operation' | 'targets' | 'isExtra' | 'open'> {
  return {
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
  const producer = new HelperProcess('peer-client', context)
  const consumer = isConsumed ? new HelperProcess('peer-client', context) : undefined
  await consumer?.ask(asked({ kind: 'consume', peer: name, address, queues }))
  await producer.ask(asked({ kind: 'connect', peer: name, address, queues }))
  return { name, server, producer, consumer }
}

async function pushContestant(context: CaseContext, name: PeerName): Promise<Contestant> {
  const opened = await open(context, name, false)
  const { producer, server } = opened
  return {
    name,
    async run(durationMs) {
      const costs = meterCpu(meteredOf(opened), [])
      const sample = await producer.ask<IngestSample>(
        asked({ kind: 'push', durationMs, countMax: Number.MAX_SAFE_INTEGER }),
      )
      return { ...sample, ...costs() }
    },
    residentBytes: () => server.residentBytes(),
  }
}

async function consumeContestant(context: CaseContext, name: PeerName): Promise<Contestant> {
  const opened = await open(context, name, true)
  const { producer, consumer, server } = opened
  const { consumedMax: countMax = consumedEvents } = peerNamed(name)
  return {
    name,
    async run() {
      await consumer?.ask(asked({ kind: 'watch' }))
      const costs = meterCpu(meteredOf(opened), [])
      const startMs = performance.now()
      const { operations } = await producer.ask<IngestSample>(
        asked({ kind: 'push', durationMs: waitMsMax, countMax }),
      )
      await consumer?.ask(asked({ kind: 'confirmed', count: operations }))
      const seconds = (performance.now() - startMs) / 1_000
      await server.settled?.()
      return { operations, seconds, ...costs() }
    },
    residentBytes: () => server.residentBytes(),
  }
}

async function latencyContestant(context: CaseContext, name: PeerName): Promise<Contestant> {
  const opened = await open(context, name, true)
  const { producer, consumer, server } = opened
  return {
    name,
    async run(durationMs) {
      await consumer?.ask(asked({ kind: 'watch' }))
      const costs = meterCpu(meteredOf(opened), [])
      const startMs = performance.now()
      const steady = { ratePerSecond, durationMs: durationMs * steadyLengthFactor }
      const operations = await producer.ask<number>(asked({ kind: 'steady', ...steady }))
      const delays = await consumer?.ask<Delays>(asked({ kind: 'delays', count: operations }))
      await consumer?.ask(asked({ kind: 'confirmed', count: operations }))
      return {
        operations,
        seconds: (performance.now() - startMs) / 1_000,
        ...costs(),
        figures: {
          'p50 ms': delays?.p50Ms ?? Number.NaN,
          'p99 ms': delays?.p99Ms ?? Number.NaN,
          'max ms': delays?.maxMs ?? Number.NaN,
        },
      }
    },
    residentBytes: () => server.residentBytes(),
  }
}

function meteredOf({ server, producer, consumer }: Opened): readonly Metered[] {
  const producers = { cpuUsByProcess: () => ({ producer: producer.cpuUs() }) }
  if (consumer === undefined) return [server, producers]
  return [server, producers, { cpuUsByProcess: () => ({ consumers: consumer.cpuUs() }) }]
}

/** Checks the type of a question. */
function asked(question: PeerQuestion): PeerQuestion {
  return question
}
