/**
 * Single pushes over 64 keep-alive connections with one push in flight each. In one shape the worker of a connection owns
 * its bots; in the other, as with a producer's pool of connections, half of the pushes are forwarded.
 */
import { join } from 'node:path'
import { ShardMap } from '../../src/process/shard-map.ts'
import type { BenchCase, CaseContext, Contestant } from '../contestant.ts'
import {
  commonNginx,
  connectionsTo,
  helperServers,
  httpContestant,
  ownContestant,
} from '../http-contestants.ts'
import { type HttpConnection, numberMark } from '../http-sample.ts'
import { sampleUpdate, seededRandom } from '../sample-updates.ts'
import { firstBotId, ServerUnderTest } from '../server-under-test.ts'

const connections = 64
export const pushedBots = 1_000
const shards = 8
const requestsPerConnection = 50
/** The body `{"update_id":N}`. */
const responseBytes = { bodyBytesMin: 15, bodyBytesMax: 40 }
const bareName = 'bare node:http and leveldown'

export interface PushLoad {
  readonly hasIdempotencyKey: boolean
  /** A connection pushes to bots of both workers in turn. */
  readonly isMixed: boolean
  readonly key: string
}

interface PushShape extends Omit<PushLoad, 'key'> {
  readonly name: string
  readonly title: string
}

const shapes: readonly PushShape[] = [
  { name: 'push', title: '', hasIdempotencyKey: false, isMixed: false },
  {
    name: 'push-idempotent',
    title: ', Idempotency-Key given',
    hasIdempotencyKey: true,
    isMixed: false,
  },
  {
    name: 'push-mixed',
    title: ', half of them forwarded',
    hasIdempotencyKey: false,
    isMixed: true,
  },
]

export const pushCases: readonly BenchCase[] = shapes.map((shape) => ({
  name: shape.name,
  title: `single pushes, 300 B updates, ${connections} connections, 1,000 bots${shape.title}`,
  operation: 'update',
  targets: [],
  charted: { kind: 'rateRatio', against: bareName },
  async open(context) {
    const server = await ServerUnderTest.start(context)
    await server.registerBots(pushedBots)
    const own = ownContestant(context, {
      server,
      connections: pushPlan(context, server, { ...shape, key: server.adminKey }),
    })
    if (context.isAlone) return [own]
    return [own, await bareContestant(context), ...(await commonNginx(context))]
  },
}))

/** Returns the connections of a load. `key` is the key of the pushes: the admin key, or another. */
export function pushPlan(
  { workers }: CaseContext,
  server: ServerUnderTest,
  { hasIdempotencyKey, isMixed, key }: PushLoad,
): HttpConnection[] {
  const map = new ShardMap({ shards, workers })
  const byWorker = Array.from({ length: workers }, (): number[] => [])
  for (let botId = firstBotId; botId < firstBotId + pushedBots; botId++) {
    byWorker[map.workerOfBot(botId)]?.push(botId)
  }
  const random = seededRandom(7)
  const authorization = `Authorization: Bearer ${key}\r\n`
  const head = hasIdempotencyKey
    ? `${authorization}Idempotency-Key: ${numberMark}\r\n`
    : authorization
  return Array.from({ length: connections }, (_, index) => ({
    port: server.privatePort,
    ...responseBytes,
    requests: Array.from({ length: requestsPerConnection }, (_each, place) => {
      const ofWorker = byWorker[(isMixed ? index + place : index) % workers] ?? []
      const botId = ofWorker[Math.floor(random() * ofWorker.length)] ?? firstBotId
      return requestOf(botId, head, sampleUpdate(random, place))
    }),
  }))
}

function requestOf(botId: number, head: string, update: string): string {
  return (
    `POST /v1/bots/${botId}/updates HTTP/1.1\r\nHost: localhost\r\n${head}` +
    `Content-Type: application/json\r\nContent-Length: ${update.length}\r\n\r\n${update}`
  )
}

async function bareContestant(context: CaseContext): Promise<Contestant> {
  const { helpers, ports } = await helperServers(context, 'node-ingest', (index) => ({
    directory: join(context.directory, `bare-${index}`),
    bots: pushedBots,
  }))
  const random = seededRandom(8)
  const requests = Array.from({ length: requestsPerConnection }, (_, place) =>
    requestOf(firstBotId + place, '', sampleUpdate(random, place)),
  )
  const plans = connectionsTo(ports, { name: bareName, connections, requests, bodyBytes: 0 })
  return httpContestant(context, {
    name: bareName,
    connections: plans.map((each) => ({ ...each, ...responseBytes })),
    processes: helpers,
  })
}
