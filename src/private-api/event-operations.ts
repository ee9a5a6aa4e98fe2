/** Describes the route of event-routes.ts for docs/reference/openapi.json. */
import { Type } from 'typebox'
import type { Operations } from './operation.ts'

/** Returns the operations of these routes. */
export function eventOperations(): Operations {
  const events = Type.String({
    description:
      'Server-sent events: one for each event, named after its type, with the event as JSON; and `missed`.',
  })
  return {
    'GET /v1/events': {
      id: 'followEvents',
      tag: 'server',
      summary: 'Shows what the operator should know, as it happens',
      description: 'The response goes on until one side ends it.',
      headers: Type.Object({
        'last-event-id': Type.Optional(
          Type.String({ description: 'The id of the last event that the reader has.' }),
        ),
      }),
      results: { 200: { 'text/event-stream': { schema: events } } },
    },
  }
}
