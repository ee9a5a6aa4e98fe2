/**
 * Compressed responses of 1.2 MB: our pool beside bare node:http that compresses in place. Both also get one small
 * request per process every 10 ms, whose delay shows how compression in place affects other clients.
 */
import type { BenchCase, CaseContext, Contestant } from '../contestant.ts'
import {
  commonNginx,
  helperServers,
  httpContestant,
  ownContestant,
  smallBody,
} from '../http-contestants.ts'
import type { HttpConnection } from '../http-sample.ts'
import { botsByWorker, directPlan, polledBots } from '../poll-plan.ts'
import { ServerUnderTest } from '../server-under-test.ts'

const connections = 8
const updates = 100
const updateBytes = 12_000
const probeEveryMs = 10
const registered = 32
const gzipHeader = 'Accept-Encoding: gzip'
const smallRequest = 'GET /small HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n'
const largeRequest = `GET /large HTTP/1.1\r\nHost: localhost\r\n${gzipHeader}\r\n\r\n`
/** Compression reduces such texts to about a third. */
const packedBytes = { bodyBytesMin: 100_000, bodyBytesMax: 1_100_000 }

export const gzipCase: BenchCase = {
  name: 'poll-gzip',
  title: `getUpdates with ${updates} x 12 KB to give, compressed, ${connections} connections`,
  operation: 'request',
  targets: [],
  charted: { kind: 'cpuRatio', against: 'node:http, gzip in place' },
  async open(context) {
    const own = await pooled(context)
    if (context.isAlone) return [own]
    return [own, await inPlace(context), ...(await commonNginx(context))]
  },
}

async function pooled(context: CaseContext): Promise<Contestant> {
  const server = await ServerUnderTest.start(context)
  const byWorker = botsByWorker(await server.registerBots(registered), context.workers)
  const large = byWorker.flatMap((bots) => bots.slice(0, connections / context.workers))
  const small = byWorker.flatMap((bots) => bots.slice(-1))
  const shape = { updates, updateBytes, headers: [gzipHeader] }
  const polled = await polledBots(server, large, shape)
  const probes = await polledBots(server, small, { updates: 0 })
  return ownContestant(context, {
    server,
    connections: [
      ...directPlan(server, polled, shape).map((each) => ({ ...each, ...packedBytes })),
      ...directPlan(server, probes, shape).map((each) => ({ ...each, probeEveryMs })),
    ],
  })
}

async function inPlace(context: CaseContext): Promise<Contestant> {
  const question = { bodyBytes: smallBody.length, packed: { updates, updateBytes } }
  const { helpers, ports } = await helperServers(context, 'node-http', () => question)
  const small = { bodyBytesMin: smallBody.length, bodyBytesMax: smallBody.length }
  const plans = Array.from(
    { length: connections },
    (_, index): HttpConnection => ({
      port: ports[index % ports.length] ?? 0,
      requests: [largeRequest],
      ...packedBytes,
    }),
  )
  const probes = ports.map((port) => ({ port, requests: [smallRequest], ...small, probeEveryMs }))
  return httpContestant(context, {
    name: 'node:http, gzip in place',
    connections: [...plans, ...probes],
    processes: helpers,
  })
}
