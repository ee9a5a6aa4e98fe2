/** getUpdates with timeout 0: with no updates, and with responses of 31 KB and 4 MB. One bot per connection. */
import type { BenchCase, CaseContext, Contestant, Target } from '../contestant.ts'
import { commonYardstick, nginx, nodeHttp, ownContestant, smallBody } from '../http-contestants.ts'
import { directPlan, type PollShape, polledBots } from '../poll-plan.ts'
import { updateBytes } from '../sample-updates.ts'
import { ServerUnderTest } from '../server-under-test.ts'

const bareName = 'bare node:http'

interface NamedShape extends PollShape {
  readonly name: string
  readonly title: string
  readonly connections: number
  readonly targets: readonly Target[]
  readonly chartedAgainst?: string
  /** Whether nginx accepts a text of this length in its configuration. */
  readonly isOfNginx: boolean
}

const shapes: readonly NamedShape[] = [
  {
    name: 'poll-empty',
    title: 'with nothing to give',
    connections: 32,
    updates: 0,
    targets: [{ kind: 'cpuRatio', against: commonYardstick, max: 3 }],
    isOfNginx: false,
  },
  {
    name: 'poll-100',
    title: `with 100 x ${updateBytes} B to give`,
    connections: 32,
    updates: 100,
    targets: [{ kind: 'cpuRatio', against: commonYardstick, max: 3.5 }],
    isOfNginx: true,
  },
  {
    name: 'poll-4mb',
    title: 'with 100 x 41 KB to give, 4.1 MB',
    connections: 8,
    updates: 100,
    updateBytes: 41_000,
    targets: [],
    // Hundreds of times the cost of a small response would make the other bars of the chart invisible.
    chartedAgainst: bareName,
    isOfNginx: false,
  },
]

export const pollCases: readonly BenchCase[] = shapes.map((shape) => ({
  name: shape.name,
  title: `getUpdates ${shape.title}, ${shape.connections} connections`,
  operation: 'request',
  targets: shape.targets,
  charted: { kind: 'cpuRatio', against: shape.chartedAgainst ?? commonYardstick },
  open: (context) => openPoll(context, shape),
}))

async function openPoll(context: CaseContext, shape: NamedShape): Promise<readonly Contestant[]> {
  const { connections } = shape
  const server = await ServerUnderTest.start(context)
  const polled = await polledBots(server, await server.registerBots(connections), shape)
  const own = ownContestant(context, { server, connections: directPlan(server, polled, shape) })
  if (context.isAlone) return [own]
  const requests = polled[0]?.requests ?? []
  const same = { connections, requests, bodyBytes: polled[0]?.bodyBytes ?? 0 }
  const small = { ...same, bodyBytes: smallBody.length }
  return [
    own,
    await nodeHttp(context, { ...same, name: bareName }),
    ...(await nginx(context, { ...small, name: commonYardstick })),
    ...(shape.isOfNginx ? await nginx(context, { ...same, name: 'nginx, equal bytes' }) : []),
  ]
}
