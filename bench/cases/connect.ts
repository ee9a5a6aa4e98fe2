/** A connection for each request: the cost of clients without keep-alive. 32 clients have one request in flight each. */
import type { BenchCase } from '../contestant.ts'
import { commonYardstick, nginx, nodeHttp, ownContestant, smallBody } from '../http-contestants.ts'
import type { HttpConnection } from '../http-sample.ts'
import { directPlan, polledBots } from '../poll-plan.ts'
import { sampleUpdate, seededRandom } from '../sample-updates.ts'
import { type RegisteredBot, ServerUnderTest } from '../server-under-test.ts'

const connections = 32

export const connectCases: readonly BenchCase[] = [
  {
    name: 'connect-poll',
    title: `getUpdates with nothing to give, a connection each, ${connections} at a time`,
    operation: 'request',
    targets: [],
    charted: { kind: 'cpuRatio', against: commonYardstick },
    open: (context) => openConnect(context, pollPlan),
  },
  {
    name: 'connect-push',
    title: `single pushes, a connection each, ${connections} at a time`,
    operation: 'update',
    targets: [],
    charted: { kind: 'cpuRatio', against: commonYardstick },
    open: (context) => openConnect(context, pushPlan),
  },
]

type Plan = (
  server: ServerUnderTest,
  bots: readonly RegisteredBot[],
) => HttpConnection[] | Promise<HttpConnection[]>

async function openConnect(
  context: Parameters<BenchCase['open']>[0],
  plan: Plan,
): ReturnType<BenchCase['open']> {
  const server = await ServerUnderTest.start(context)
  const plans = await plan(server, await server.registerBots(connections))
  const own = ownContestant(context, { server, connections: plans })
  if (context.isAlone) return [own]
  const requests = plans[0]?.requests ?? []
  const same = { connections, requests, bodyBytes: smallBody.length, isOneShot: true }
  return [
    own,
    await nodeHttp(context, { ...same, name: 'bare node:http' }),
    ...(await nginx(context, { ...same, name: commonYardstick })),
  ]
}

async function pollPlan(
  server: ServerUnderTest,
  bots: readonly RegisteredBot[],
): Promise<HttpConnection[]> {
  const shape = { updates: 0, isOneShot: true }
  return directPlan(server, await polledBots(server, bots, shape), shape)
}

function pushPlan(server: ServerUnderTest, bots: readonly RegisteredBot[]): HttpConnection[] {
  const random = seededRandom(9)
  return bots.map(({ botId }) => {
    const update = sampleUpdate(random, botId)
    return {
      port: server.privatePort,
      requests: [
        `POST /v1/bots/${botId}/updates HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${server.adminKey}\r\n` +
          `Content-Type: application/json\r\nContent-Length: ${update.length}\r\nConnection: close\r\n\r\n${update}`,
      ],
      bodyBytesMin: 15,
      bodyBytesMax: 40,
      isOneShot: true,
    }
  })
}
