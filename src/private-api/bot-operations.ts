/** Describes the routes of bot-routes.ts for docs/reference/openapi.json. */
import { Type } from 'typebox'
import { fieldSchemas } from './field-schemas.ts'
import { json, type Operations } from './operation.ts'

const { botId, botNames, count, health, mode, orNull, preciseTime, time } = fieldSchemas

/** Returns the operations of these routes. */
export function botOperations(): Operations {
  const { issuedToken, registeredBot, botState, changedBot, removedBot } = botSchemas()
  return {
    'POST /v1/bots': {
      id: 'createBot',
      tag: 'bots',
      summary: 'Registers a bot',
      description:
        'Without `bot_id`, the server chooses a free id. `first_name` and `username` are what getMe returns.',
      results: { 200: json(registeredBot) },
      errors: ['BOT_EXISTS', 'BOT_NOT_SERVED'],
    },
    'GET /v1/bots/:id': {
      id: 'getBot',
      tag: 'bots',
      summary: 'Returns the state of a bot',
      results: { 200: json(botState) },
      errors: ['UNKNOWN_BOT'],
    },
    'PATCH /v1/bots/:id': {
      id: 'changeBot',
      tag: 'bots',
      summary: 'Changes a setting of a bot',
      description:
        'With `validate`, every push to the bot is checked as with `validate=telegram`; null ends this.',
      body: json(Type.Object({ validate: validation() }, { additionalProperties: false })),
      results: { 200: json(changedBot) },
      errors: ['UNKNOWN_BOT'],
    },
    'DELETE /v1/bots/:id': {
      id: 'removeBot',
      tag: 'bots',
      summary: 'Removes a bot and its queues',
      results: { 200: json(removedBot) },
      errors: ['UNKNOWN_BOT'],
    },
    'POST /v1/bots/:id/token': {
      id: 'rotateToken',
      tag: 'bots',
      summary: 'Issues a new token',
      description: 'The old token stays valid for `overlap` seconds. Default: 0, not at all.',
      results: { 200: json(issuedToken) },
      errors: ['UNKNOWN_BOT'],
    },
  }
}

/** Returns the schemas of the results. postbote/client publishes types of some of them. */
export function botSchemas() {
  const queue = queueFields()
  const queueState = Type.Object(queue, {
    $id: 'QueueState',
    description: 'The state of one queue of a bot, and of its webhook.',
  })
  const issued = {
    bot_id: botId(),
    token: Type.String({ description: 'The complete token. It is shown only this once.' }),
  }
  return {
    issuedToken: Type.Object(issued, {
      $id: 'IssuedToken',
      description: 'A bot with its new token.',
    }),
    registeredBot: Type.Object(
      {
        ...issued,
        same_username: Type.Optional(
          Type.Array(botId(), {
            description:
              'Other bots with this username, in any case. The server allows that; as far as its workers know and respond.',
          }),
        ),
      },
      { $id: 'RegisteredBot', description: 'A new bot with its token.' },
    ),
    botState: Type.Object(
      { ...botNames(), validate: validation(), ...queue, test: queueState },
      { $id: 'BotState', description: 'The bot with its queue; `test` is its /test/ queue.' },
    ),
    changedBot: Type.Object(
      { bot_id: botId(), validate: validation() },
      { $id: 'ChangedBot', description: 'The bot with its settings.' },
    ),
    removedBot: Type.Object(
      { bot_id: botId(), removed: Type.Literal(true) },
      { $id: 'RemovedBot', description: 'The bot that was removed.' },
    ),
  }
}

function validation() {
  return orNull(Type.Literal('telegram', { description: 'What each push is checked for.' }))
}

/** The fields of one queue. docs/use/api.md explains them. */
function queueFields() {
  const text = Type.String()
  return {
    mode: mode(),
    pending: count('Updates that the bot has not confirmed, or its webhook has not accepted.'),
    pending_bytes: count('Their bytes.'),
    next_update_id: count('The id of the next update.'),
    oldest_age: orNull(count('The age of the oldest of them, in seconds.')),
    dead_letters: count('The number of dead letters.'),
    waiting_poll: Type.Boolean({ description: 'Whether a getUpdates call waits.' }),
    webhook_host: orNull(text),
    max_connections: orNull(count('How many connections the webhook may have now.')),
    last_error_date: orNull(time('When the last attempt failed.')),
    last_error_message: orNull(text),
    paused: Type.Boolean({ description: 'Whether the operator has stopped deliveries.' }),
    deliveries_per_second: orNull(
      Type.Number({ exclusiveMinimum: 0, description: 'The limit of deliveries.' }),
    ),
    health: orNull(health()),
    health_reason: orNull(text),
    deliveries: Type.Object(
      {
        delivered: count('2xx responses.'),
        rejected: count('Other responses.'),
        timed_out: count('No response in time.'),
        connection_failed: count('Connections that failed.'),
        tls_failed: count('TLS handshakes that failed.'),
        refused_for_good: count('Updates that the endpoint rejected permanently.'),
        expired: count('Updates that expired before they were delivered.'),
      },
      { $id: 'DeliveryCounts', description: 'Outcomes since the worker of the bot started.' },
    ),
    parked_keys: count('Ordering keys whose first update has failed and waits for its retry.'),
    next_attempt: orNull(preciseTime('When the webhook is tried next.')),
  }
}
