/**
 * getUpdates over connections that mix bots, like those of a reverse proxy. Each connection polls for a bot of either
 * worker in turn, so that every other request is forwarded. The contestant uses other bots of the same server over their
 * own connections; the CPU time of a hop is twice the difference.
 */
import type { BenchCase } from '../contestant.ts'
import { commonNginx, commonYardstick, ownContestant } from '../http-contestants.ts'
import { botsByWorker, directPlan, mixedPlan, polledBots } from '../poll-plan.ts'
import { updateBytes } from '../sample-updates.ts'
import { ServerUnderTest } from '../server-under-test.ts'

const connections = 32
/** Enough bots that each worker very probably owns enough of them. */
const bots = 4 * connections

interface ForwardedShape {
  readonly name: string
  readonly title: string
  readonly updates: number
}

const shapes: readonly ForwardedShape[] = [
  { name: 'forwarded', title: 'nothing to give', updates: 0 },
  { name: 'forwarded-100', title: `100 x ${updateBytes} B to give`, updates: 100 },
]

export const forwardedCases: readonly BenchCase[] = shapes.map((shape) => ({
  name: shape.name,
  title: `getUpdates over ${connections} connections that mix bots, half of it forwarded, ${shape.title}`,
  operation: 'request',
  targets: [],
  charted: { kind: 'cpuRatio', against: commonYardstick },
  async open(context) {
    const workers = Math.max(context.workers, 2)
    const server = await ServerUnderTest.start(context, { workers })
    const [first = [], second = []] = botsByWorker(await server.registerBots(bots), workers)
    const one = await polledBots(server, first.slice(0, connections), shape)
    const other = await polledBots(server, second.slice(0, connections), shape)
    const mixed = mixedPlan(server, [one, other])
    const own = ownContestant(context, { server, connections: mixed })
    if (context.isAlone) return [own]
    // These bots are polled only here: if both contestants polled a bot, one would repeat an offset that the other has
    // just used.
    const end = connections + connections / 2
    const both = [...first.slice(connections, end), ...second.slice(connections, end)]
    const direct = directPlan(server, await polledBots(server, both, shape), shape)
    return [
      own,
      ownContestant(context, { name: 'postbote, direct', server, connections: direct }),
      ...(await commonNginx(context)),
    ]
  },
}))
