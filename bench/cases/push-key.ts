/**
 * Single pushes with a key of its own, as a producer should have one, beside the same pushes with the admin key. One key has
 * limits, which it never reaches, and one is for the pushed bots only: these are counted and looked up for each push.
 */
import type { BenchCase } from '../contestant.ts'
import { ownContestant } from '../http-contestants.ts'
import { firstBotId, ServerUnderTest } from '../server-under-test.ts'
import { pushedBots, pushPlan } from './push.ts'

const shape = { hasIdempotencyKey: false, isMixed: false }
const limit = 1_000_000

export const pushKeyCase: BenchCase = {
  name: 'push-key',
  title:
    'single pushes, 300 B updates, 64 connections, 1,000 bots, with a key instead of the admin key',
  operation: 'update',
  targets: [],
  charted: { kind: 'cpuRatio', against: 'postbote, admin key' },
  async open(context) {
    const server = await ServerUnderTest.start(context)
    await server.registerBots(pushedBots)
    const bots = Array.from({ length: pushedBots }, (_, nth) => firstBotId + nth)
    const key = await server.makeKey({ name: 'plain', scopes: ['push'] })
    const own = ownContestant(context, {
      server,
      connections: pushPlan(context, server, { ...shape, key }),
    })
    if (context.isAlone) return [own]
    const limited = await server.makeKey({
      name: 'limited',
      scopes: ['push'],
      bots,
      updates_per_second: limit,
      requests_per_second: limit,
    })
    return [
      own,
      ownContestant(context, {
        name: 'postbote, admin key',
        server,
        connections: pushPlan(context, server, { ...shape, key: server.adminKey }),
      }),
      ownContestant(context, {
        name: 'postbote, key with limits and bots',
        server,
        connections: pushPlan(context, server, { ...shape, key: limited }),
      }),
    ]
  },
}
