/** Describes the routes of session-routes.ts for docs/reference/openapi.json. */
import { Type } from 'typebox'
import { fieldSchemas } from './field-schemas.ts'
import { scopesSchema } from './key-operations.ts'
import { json, type Operations } from './operation.ts'

const { botId, orNull, time } = fieldSchemas

/** Returns the operations of these routes. */
export function sessionOperations(): Operations {
  const session = Type.Object(
    { expires: time('When the session ends.') },
    { $id: 'Session', description: 'The session of the cookie in the response.' },
  )
  const rights = Type.Object(
    {
      key_id: orNull(Type.String({ description: 'The id of the key; null for the admin key.' })),
      name: orNull(Type.String({ description: 'The name of the key.' })),
      scopes: scopesSchema(),
      bots: orNull(Type.Array(botId())),
    },
    { $id: 'Rights', description: 'What the key or the session of the request may do.' },
  )
  const ended = Type.Object(
    { ended: Type.Literal(true) },
    {
      $id: 'EndedSession',
      description: 'The session has ended, and the response removes its cookie from the browser.',
    },
  )
  return {
    'POST /v1/session': {
      id: 'beginSession',
      tag: 'server',
      summary: 'Begins a session of a browser',
      description: 'The cookie in the response stands for the key, except in this call.',
      results: { 200: json(session) },
      needsKey: true,
    },
    'GET /v1/session': {
      id: 'getSession',
      tag: 'server',
      summary: 'Returns what the key or the session may do',
      results: { 200: json(rights) },
    },
    'DELETE /v1/session': {
      id: 'endSession',
      tag: 'server',
      summary: 'Ends the session of a browser',
      results: { 200: json(ended) },
    },
  }
}
