/** Hooks the index of all bots into its worker. */
import type { ModuleParts, WorkerModule } from '../../worker/module.ts'

export function fleetModule({ registry: { fleet } }: Pick<ModuleParts, 'registry'>): WorkerModule {
  return {
    served: (shard) => fleet.start(shard),
    left: (shard) => fleet.forget(shard),
    stop: () => fleet.close(),
  }
}
