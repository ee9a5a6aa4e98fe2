/**
 * The features that work in a worker for as long as that has shards, and what hooks into its deliveries, each in the order in which
 * they are told of what happens. A server runs without any of the features: it has neither its calls nor what it does by itself.
 */
import type { DeliveryHooks } from '../delivery/hooks.ts'
import { deliveryEvents } from '../features/events/delivery-events.ts'
import type { WorkerEvents } from '../features/events/worker-events.ts'
import { fleetModule } from '../features/fleet/module.ts'
import { lookBackModule } from '../features/look-back/module.ts'
import { portalModule } from '../features/portal/module.ts'
import { relayModule } from '../features/relay/module.ts'
import { deliverySpans } from '../features/tracing/delivery-spans.ts'
import type { Clock } from '../kit/clock.ts'
import { Modules } from '../kit/modules.ts'
import type { Tracer } from '../kit/tracing/tracer.ts'
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

interface DeliveryParts {
  readonly clock: Clock
  readonly events: Pick<WorkerEvents, 'attempts' | 'report'>
  /** Absent if updates are not traced. */
  readonly tracer?: Tracer | undefined
}

export function deliveryModules({ clock, events, tracer }: DeliveryParts): Modules<DeliveryHooks> {
  const modules = new Modules<DeliveryHooks>()
  const { attempts, report } = events
  modules.list.push(deliveryEvents(clock, report, attempts))
  if (tracer !== undefined) modules.list.push(deliverySpans(tracer))
  return modules
}
