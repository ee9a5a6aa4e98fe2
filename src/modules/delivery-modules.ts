/** What hooks into the deliveries of a worker (delivery/hooks.ts), in the order in which it is told. */
import type { DeliveryHooks } from '../delivery/hooks.ts'
import { deliveryEvents } from '../features/events/delivery-events.ts'
import type { WorkerEvents } from '../features/events/worker-events.ts'
import { deliverySpans } from '../features/tracing/delivery-spans.ts'
import type { Clock } from '../kit/clock.ts'
import { Modules } from '../kit/modules.ts'
import type { Tracer } from '../kit/tracing/tracer.ts'

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
