/** The control calls that a worker makes to its primary, over the channel of control.ts. */
import type { EventLog } from '../event-log.ts'
import type { EventPage, EventQuestion, NewOperatorEvent } from '../../kit/operator-event.ts'
import type { Control } from './control.ts'

/** The control interface of the primary. */
export interface PrimaryControl {
  /** Adds events to the log of the server. */
  reportEvents(events: readonly NewOperatorEvent[]): Promise<void>
  /** Resolves when there is an event, or after the time of the question. */
  readEvents(question: EventQuestion): Promise<EventPage>
  /** Where the delivery to `--events-url` goes on. */
  eventDeliveryPosition(): Promise<number>
  /** The events up to this id were delivered, or given up. */
  eventsDeliveredTo(id: number): Promise<void>
}

/** The primary, as a worker calls it. */
export type PrimaryCalls = Pick<Control<PrimaryControl>, 'call'>

/** Returns the control interface of a primary with this log. */
export function primaryControl(events: EventLog): PrimaryControl {
  return {
    async reportEvents(reported) {
      for (const event of reported) events.report(event)
    },
    readEvents: (question) => events.read(question),
    eventDeliveryPosition: async () => events.deliveryPosition(),
    eventsDeliveredTo: async (id) => events.deliveredTo(id),
  }
}
