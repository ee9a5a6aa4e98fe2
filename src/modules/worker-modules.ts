/**
 * The features that work in a worker for as long as that has shards, in the order in which they are told of what happens. A server
 * runs without any of them: it has neither its calls nor what it does by itself.
 */
import { fleetModule } from '../features/fleet/module.ts'
import { lookBackModule } from '../features/look-back/module.ts'
import { portalModule } from '../features/portal/module.ts'
import { relayModule } from '../features/relay/module.ts'
import type { MakeModule } from '../worker/module.ts'
import type { CallTable } from '../api/call-table.ts'
import { callTable } from './api-operations.ts'

export const workerModules: Readonly<Record<string, MakeModule>> = {
  relay: relayModule,
  fleet: fleetModule,
  lookBack: lookBackModule,
  portal: portalModule,
}

/** What a worker has of features. */
export interface FeatureLists {
  readonly modules: typeof workerModules
  /** A call that is not in it has no route, and openapi.json does not show it. */
  readonly calls: CallTable
}

/** A server has all; tests take some out. */
export const allFeatures: FeatureLists = { modules: workerModules, calls: callTable }
