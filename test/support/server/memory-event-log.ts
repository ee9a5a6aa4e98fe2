/** A log of events without files, for tests of other things. */
import { systemClock } from '../../../src/kit/clock.ts'
import { EventLog } from '../../../src/process/event-log.ts'

export function memoryEventLog(): EventLog {
  return new EventLog({
    clock: systemClock,
    stored: { events: [], deliveredTo: undefined },
    file: { add: () => undefined, deliveredTo: () => undefined },
  })
}
