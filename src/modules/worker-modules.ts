/**
 * The features that work in a worker for as long as that has shards, in the order in which they are told of what happens. A server
 * runs without any of them: it has neither its calls nor what it does by itself.
 */
import { fleetModule } from '../features/fleet/module.ts'
import { lookBackModule } from '../features/look-back/module.ts'
import { portalModule } from '../features/portal/module.ts'
import { relayModule } from '../features/relay/module.ts'
import type { MakeModule } from '../worker/module.ts'
import type { PrivateApiOptions } from './private-api.ts'

export const workerModules: Readonly<Record<string, MakeModule>> = {
  // Before the index of all bots, which finds the relays.
  relay: relayModule,
  fleet: fleetModule,
  lookBack: lookBackModule,
  portal: portalModule,
}

/** What a worker has of features; tests take some out. */
export interface FeatureLists extends Pick<PrivateApiOptions, 'operations'> {
  readonly modules: typeof workerModules
}
