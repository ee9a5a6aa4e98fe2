/** Describes the routes of session-routes.ts for docs/openapi.json. */
import { Type } from 'typebox'
import { fieldSchemas } from './field-schemas.ts'
import { json, type Operations } from './operation.ts'

const { time } = fieldSchemas

/** Returns the operations of these routes. */
export function sessionOperations(): Operations {
  const session = Type.Object(
    { expires: time('When the session ends.') },
    { $id: 'Session', description: 'The session of the cookie in the response.' },
  )
  const ended = Type.Object(
    { ended: Type.Literal(true) },
    { $id: 'EndedSession', description: 'The response removes the cookie from the browser.' },
  )
  return {
    'POST /v1/session': {
      id: 'beginSession',
      tag: 'server',
      summary: 'Begins a session of a browser',
      description: 'The cookie in the response stands for the admin key, except in this call.',
      results: { 200: json(session) },
      needsKey: true,
    },
    'DELETE /v1/session': {
      id: 'endSession',
      tag: 'server',
      summary: 'Ends the session of a browser',
      results: { 200: json(ended) },
    },
  }
}
