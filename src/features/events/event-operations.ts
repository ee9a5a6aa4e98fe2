/** The call that shows what the operator of the server should know. */
import * as is from '../../api/words.ts'
import { eventsKeptMax } from '../../kit/limits.ts'
import { operatorEventTypes } from '../../kit/operator-event.ts'
import { content, declareOperations } from '../../api/operation.ts'

export const eventOperations = declareOperations('server', {
  followEvents: {
    route: 'GET /v1/events',
    scope: 'read',
    about: 'fleet',
    lasts: true,
    command: 'events',
    more: '#events-for-the-operator',
    summary: 'Shows what the operator should know, as it happens',
    description: 'The response goes on until one side ends it.',
    query: () => eventsQuery(),
    headers: () =>
      is.object({
        'last-event-id': is.optional(is.text('The id of the last event that the reader has.')),
      }),
    results: () => ({
      200: content(
        'text/event-stream',
        'Server-sent events: one for each event, named after its type, with the event as JSON; and `missed`.',
      ),
    }),
  },
})

/** The position of a reader of events has at most this many characters: `eventPositionNodesMax` nodes with the longest names fit. */
const eventPositionLengthMax = 8_192

/** Which events a reader wants. */
export function eventsQuery() {
  return {
    after: is.optional(
      is.text(
        'Begins after this position, which is the id of an event in the stream; 0 is before all. Last-Event-ID has precedence.',
        { maxLength: eventPositionLengthMax },
      ),
    ),
    last: is.optional(
      is.integer('Without a position: begins with so many events of the past, of each node.', {
        minimum: 0,
        maximum: eventsKeptMax,
        default: 0,
      }),
    ),
    type: is.optional(is.oneOf(operatorEventTypes, 'Only events of this type.')),
  }
}
