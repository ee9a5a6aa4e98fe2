/** The calls about the sessions of browsers. */
import * as is from '../../api/words.ts'
import { declareOperations } from '../../api/operation.ts'

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
      is.named('Session', 'The session of the cookie in the response.', {
        expires: is.time('When the session ends.'),
      }),
  },
  getSession: {
    route: `GET ${sessionPath}`,
    scope: 'any',
    about: 'nobody',
    summary: 'Returns what the key or the session may do',
    result: () =>
      is.named('Rights', 'What the key or the session of the request may do.', {
        key_id: is.orNull(is.text('The id of the key; null for the admin key.')),
        name: is.orNull(is.text('The name of the key.')),
        scopes: is.scopeList(),
        bots: is.orNull(is.list(is.botId())),
        foreign_tokens: is.optional(is.exactly(true, 'The server has `--foreign-tokens`.')),
        relays: is.optional(is.exactly(true, 'The server has `--relay-from`.')),
      }),
  },
  endSession: {
    route: `DELETE ${sessionPath}`,
    scope: 'any',
    about: 'nobody',
    summary: 'Ends the session of a browser',
    result: () =>
      is.named(
        'EndedSession',
        'The session has ended, and the response removes its cookie from the browser.',
        { ended: is.exactly(true) },
      ),
  },
})
