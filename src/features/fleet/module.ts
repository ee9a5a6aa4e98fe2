/** Hooks the index of all bots into its worker, and the calls about all of them. */
import type { ModuleParts, WorkerModule } from '../../worker/module.ts'
import { addFleetRoutes } from './fleet-routes.ts'
import { Fleet } from './fleet.ts'
import { QueueTimes } from './queue-times.ts'

export function fleetModule(parts: ModuleParts): WorkerModule {
  const { dataDir, isShared, registry } = parts
  // A shard of a database may be at another node meanwhile.
  const times = isShared ? undefined : new QueueTimes(dataDir)
  return fleetHooks(new Fleet({ ...parts, bots: registry.bots }, times))
}

export function fleetHooks(fleet: Fleet): WorkerModule {
  return {
    addCalls: (app, api) => addFleetRoutes(app, fleet, api),
    served: (shard) => fleet.start(shard),
    found: (shard, bots) => fleet.found(shard, bots),
    foundAll: (shard) => fleet.foundAll(shard),
    unfound: (shard) => fleet.unfound(shard),
    committed: (shard, operations) => fleet.committed(shard, operations),
    left: (shard) => fleet.forget(shard),
    followed: (queue) => fleet.followed(queue),
    named: (username) => fleet.named(username),
    namedCostMs: () => fleet.questionCostMs(0),
    stop: () => fleet.close(),
  }
}
