/** Describes the route of tail-routes.ts for docs/reference/openapi.json. */
import { Type } from 'typebox'
import type { Operations } from './operation.ts'

/** Returns the operations of these routes. */
export function tailOperations(): Operations {
  const events = Type.String({
    description:
      'Server-sent events: `update`, `confirmed`, `dropped` and `missed`, each with JSON as its data.',
  })
  return {
    'GET /v1/bots/:id/tail': {
      id: 'tailQueue',
      tag: 'updates',
      summary: 'Shows live what is pushed to a queue and confirmed',
      description: 'The response goes on until one side ends it.',
      results: { 200: { 'text/event-stream': { schema: events } } },
      errors: ['UNKNOWN_BOT'],
    },
  }
}
