/** A log of events without files, for tests of other things. */
import { systemClock } from '../../../src/clock.ts'
import { EventLog } from '../../../src/events/event-log.ts'

export function memoryEventLog(): EventLog {
  return new EventLog({
    clock: systemClock,
    stored: { events: [], deliveredTo: undefined },
    file: { add: () => undefined, deliveredTo: () => undefined },
  })
}
