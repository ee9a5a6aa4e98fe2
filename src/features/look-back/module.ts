/** Hooks the replays of a worker into it, and the calls about updates that have left their queues. */
import type { BotRegistry } from '../../bots/registry.ts'
import type { Operation } from '../../shard/operations.ts'
import type { ModuleParts, WorkerModule } from '../../worker/module.ts'
import { addDeadLetterRoutes } from './dead-letter-routes.ts'
import { addDeadLetterReasonRoutes } from './dead-letter-reason-routes.ts'
import { addLookBackRoutes } from './look-back-routes.ts'
import { ReplayJobs } from './replay-jobs.ts'
import { addReplayRoutes } from './replay-routes.ts'

export function lookBackModule({ clock, counters, log, registry }: ModuleParts): WorkerModule {
  const replays = new ReplayJobs({
    clock,
    counters,
    log,
    findQueue: (queue) => registry.bots.findQueue(queue),
    assertAccepting: (queue) => registry.assertAccepting(queue),
  })
  return lookBackHooks(replays, registry)
}

export function lookBackHooks(replays: ReplayJobs, registry: BotRegistry): WorkerModule {
  return {
    addCalls(app, api) {
      addDeadLetterRoutes(app, registry, replays)
      addDeadLetterReasonRoutes(app, { ...api, bots: registry })
      addLookBackRoutes(app, registry)
      addReplayRoutes(app, registry, replays)
    },
    served: (shard) => replays.start(shard),
    left: (shard) => void replays.forget(shard),
    async removing(bot) {
      const operations: Operation[] = []
      for (const queue of [bot.main, await bot.test()]) {
        operations.push(...(await replays.removalOf(queue)))
      }
      return operations
    },
    stays: (bot) => replays.start(bot.main.shard),
    stop: () => replays.close(),
  }
}
