/** The calls about the sessions of browsers. */
import { Type } from 'typebox'
import { fieldSchemas } from '../../api/field-schemas.ts'
import { declareOperations } from '../../api/operation.ts'

const { botId, orNull, time } = fieldSchemas

const sessionPath = '/v1/session'

export const sessionOperations = declareOperations('server', {
  beginSession: {
    route: `POST ${sessionPath}`,
    scope: 'any',
    about: 'nobody',
    needsKey: true,
    summary: 'Begins a session of a browser',
    description: 'The cookie in the response stands for the key, except in this call.',
    result: () =>
      Type.Object(
        { expires: time('When the session ends.') },
        { $id: 'Session', description: 'The session of the cookie in the response.' },
      ),
  },
  getSession: {
    route: `GET ${sessionPath}`,
    scope: 'any',
    about: 'nobody',
    summary: 'Returns what the key or the session may do',
    result: () =>
      Type.Object(
        {
          key_id: orNull(
            Type.String({ description: 'The id of the key; null for the admin key.' }),
          ),
          name: orNull(Type.String({ description: 'The name of the key.' })),
          scopes: fieldSchemas.scopes(),
          bots: orNull(Type.Array(botId())),
          foreign_tokens: Type.Optional(
            Type.Literal(true, { description: 'The server has `--foreign-tokens`.' }),
          ),
          relays: Type.Optional(
            Type.Literal(true, { description: 'The server has `--relay-from`.' }),
          ),
        },
        { $id: 'Rights', description: 'What the key or the session of the request may do.' },
      ),
  },
  endSession: {
    route: `DELETE ${sessionPath}`,
    scope: 'any',
    about: 'nobody',
    summary: 'Ends the session of a browser',
    result: () =>
      Type.Object(
        { ended: Type.Literal(true) },
        {
          $id: 'EndedSession',
          description:
            'The session has ended, and the response removes its cookie from the browser.',
        },
      ),
  },
})
