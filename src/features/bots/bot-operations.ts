/** The calls that register, show, change and remove bots. */
import { type Static, Type } from 'typebox'
import type { ErrorCode } from '../../kit/errors.ts'
import { botIdMax, botIdMin, ttlSMax } from '../../kit/limits.ts'
import { fieldSchemas, namePattern } from '../../api/field-schemas.ts'
import {
  connectionsCapMax,
  headersMax,
  headerValueLengthMax,
  retryDelaySMax,
  retryDelaysMax,
} from '../../api/limits.ts'
import { errorSchema } from '../../api/error-schema.ts'
import { botPath, declareOperations, lines, type Unchanging } from '../../api/operation.ts'
import { webhookFields } from './webhook-operations.ts'
import { needs as relay } from '../relay/needs.ts'

const {
  age,
  botId,
  botNames,
  bytes,
  count,
  health,
  idempotencyKey,
  mode,
  orNull,
  overlap,
  preciseTime,
  time,
} = fieldSchemas

/**
 * An old token may stay valid this long beside a new one: a week is long enough to roll a new token out and short enough
 * for a leaked one to end.
 */
const tokenOverlapSMax = 7 * 86_400
/** The rules of the names of a bot. */
export const nameRules = {
  first_name: {
    pattern: namePattern,
    description: '1 to 64 characters, none of them a control character',
  },
  username: {
    pattern: '^[A-Za-z0-9_]{1,64}$',
    description: '1 to 64 letters, digits or underscores',
  },
} as const

/** The codes that a line of registrations can have. */
const registrationErrors = [
  'BAD_REQUEST',
  'BOT_EXISTS',
  'BOT_NOT_SERVED',
  'BAD_WEBHOOK',
  'UNAUTHORIZED',
  'STORE_UNAVAILABLE',
  'SHARD_BROKEN',
  'OUTCOME_UNKNOWN',
  'REQUEST_TOO_LARGE',
  'TOO_MANY_BODIES',
  'TOO_MANY_REQUESTS',
  'UNAVAILABLE',
  'INTERNAL',
] as const satisfies readonly ErrorCode[]

const registrationExample = [
  '{"idempotency_key":"tenant-1","first_name":"Echo","username":"echo_bot"}',
  '{"idempotency_key":"tenant-2","first_name":"Two","username":"two_bot","webhook":{"url":"https://bot.example/2"}}',
  '',
].join('\n')
const registeredExample = [
  '{"bot_id":112215992545863,"duplicate":true}',
  '{"bot_id":89605318502875,"token":"89605318502875:E_ZhRMSsaYr_XEtDv9aBjKUTnJVVpA1kVnU"}',
  '',
].join('\n')

export const botOperations = declareOperations('bots', {
  createBot: {
    route: 'POST /v1/bots',
    scope: 'manage',
    about: 'fleet',
    command: 'bots register',
    done: '{token}',
    summary: 'Registers a bot',
    description:
      'Without `bot_id`, the server chooses a free id. `first_name` and `username` are what getMe returns. With `--foreign-tokens`, `token` is one that another server has made.',
    body: () => registration(),
    result: () =>
      Type.Object(
        {
          ...issued(),
          same_username: Type.Optional(
            Type.Array(botId(), {
              description:
                'Other bots with this username, in any case. The server allows that; as far as its workers know and respond.',
            }),
          ),
        },
        { $id: 'RegisteredBot', description: 'A new bot with its token.' },
      ),
    errors: ['BOT_EXISTS', 'BOT_NOT_SERVED'],
  },
  registerBots: {
    route: 'POST /v1/registrations',
    scope: 'manage',
    about: 'fleet',
    more: '#many-bots',
    summary: 'Registers many bots, each of them once',
    description:
      'The body is NDJSON, a line for each bot, and so is the response, in the same order. A bad line fails alone. A repeated line registers nothing and gets no token. If the webhook of a line fails, its bot is registered without one.',
    checked: 'nothing',
    bodyContent: () =>
      lines([registrationLine()], {
        description: 'A RegistrationLine for each bot.',
        example: registrationExample,
      }),
    results: () => ({
      200: lines(
        [
          Type.Union([
            keyedBot(),
            duplicateBot(),
            errorSchema({ name: 'RegistrationError', codes: registrationErrors }),
          ]),
        ],
        {
          description: 'One line for each bot: a KeyedBot, a DuplicateBot or a RegistrationError.',
          example: registeredExample,
        },
      ),
    }),
  },
  getBot: {
    route: `GET ${botPath}`,
    scope: 'read',
    about: 'bot',
    portal: 'look',
    command: 'bots show',
    summary: 'Returns the state of a bot',
    result: () => {
      const queue = queueFields()
      const test = Type.Object(queue, {
        $id: 'QueueState',
        description: 'The state of one queue of a bot, and of its webhook.',
      })
      return Type.Object(
        {
          ...botNames(),
          validate: validation(),
          ...settings(),
          ...headerNames(),
          relay: Type.Optional(relay.relayFields()),
          ...queue,
          test,
        },
        { $id: 'BotState', description: 'The bot with its queue; `test` is its /test/ queue.' },
      )
    },
  },
  changeBot: {
    route: `PATCH ${botPath}`,
    scope: 'manage',
    about: 'bot',
    command: 'bots set',
    more: '#settings-of-a-bot',
    summary: 'Changes names and settings of a bot',
    description:
      'Fields that are left out stay, and null takes a setting back. With `validate`, every push to the bot is checked as with `validate=telegram`. The values of headers are never shown.',
    checked: 'names',
    body: () =>
      Type.Object(
        {
          validate: Type.Optional(validation()),
          first_name: Type.Optional(Type.String(nameRules.first_name)),
          username: Type.Optional(Type.String(nameRules.username)),
          ...settings(),
          headers: Type.Optional(orNull(headerValues())),
        },
        { additionalProperties: false },
      ),
    result: () =>
      Type.Object(
        { bot_id: botId(), validate: validation(), ...settings(), ...headerNames() },
        { $id: 'ChangedBot', description: 'The bot with its settings.' },
      ),
  },
  removeBot: {
    route: `DELETE ${botPath}`,
    scope: 'manage',
    about: 'bot',
    command: 'bots remove',
    done: 'removed bot {id}',
    summary: 'Removes a bot and its queues',
    result: () =>
      Type.Object(
        { bot_id: botId(), removed: Type.Literal(true) },
        { $id: 'RemovedBot', description: 'The bot that was removed.' },
      ),
  },
  rotateToken: {
    route: `POST ${botPath}/token`,
    scope: 'manage',
    about: 'bot',
    command: 'bots token',
    done: '{token}',
    summary: 'Issues a new token',
    description:
      'The old token stays valid for `overlap` seconds. Default: 0, not at all. With `--foreign-tokens`, `token` is one that another server has made for this bot.',
    body: () =>
      orNull(
        Type.Object(
          { overlap: overlap(tokenOverlapSMax), token: foreignToken() },
          { additionalProperties: false },
        ),
      ),
    result: () =>
      Type.Object(issued(), { $id: 'IssuedToken', description: 'A bot with its new token.' }),
  },
})

function registration() {
  return Type.Object(
    { ...registrationFields(), token: foreignToken() },
    { additionalProperties: false },
  )
}

function registrationFields() {
  return {
    bot_id: Type.Optional(Type.Integer({ minimum: botIdMin, maximum: botIdMax })),
    first_name: Type.String(nameRules.first_name),
    username: Type.String(nameRules.username),
    polls: Type.Optional(orNull(polls())),
  }
}

/** A line of registrations. */
export type RegistrationLine = Unchanging<Static<ReturnType<typeof registrationLine>>>

/** Returns the schema of a line of registrations. */
export function registrationLine() {
  const { drop_pending_updates: _ofAnOldBot, ...webhook } = webhookFields()
  return Type.Object(
    {
      ...registrationFields(),
      idempotency_key: idempotencyKey(),
      webhook: Type.Optional(Type.Object(webhook, { additionalProperties: false })),
    },
    {
      $id: 'RegistrationLine',
      additionalProperties: false,
      description: 'A bot with its key, and its webhook as for setWebhook.',
    },
  )
}

function keyedBot() {
  return Type.Object(
    {
      ...issued(),
      webhook_error: Type.Optional(
        Type.Object(
          { code: Type.String(), message: Type.String() },
          { description: 'Why the bot is registered without its webhook.' },
        ),
      ),
    },
    { $id: 'KeyedBot', description: 'A new bot with its token.' },
  )
}

function duplicateBot() {
  return Type.Object(
    { bot_id: botId(), duplicate: Type.Literal(true) },
    { $id: 'DuplicateBot', description: 'The bot that was registered with this key before.' },
  )
}

/** What an operator may set for a bot; those that are not set are absent. */
function settings() {
  const delay = Type.Integer({ minimum: 0, maximum: retryDelaySMax })
  return {
    polls: Type.Optional(orNull(polls())),
    default_ttl: Type.Optional(
      orNull(
        Type.Integer({
          minimum: 1,
          maximum: ttlSMax,
          description:
            'Seconds after which an update expires whose producer names no time. Types that expire sooner still do.',
        }),
      ),
    ),
    connections_cap: Type.Optional(
      orNull(
        Type.Integer({
          minimum: 1,
          maximum: connectionsCapMax,
          description: 'The most connections of its webhooks, whatever the bot asks for.',
        }),
      ),
    ),
    retry_delays: Type.Optional(
      orNull(
        Type.Array(delay, {
          minItems: 1,
          maxItems: retryDelaysMax,
          description:
            'Seconds before the next attempt after each failure of an update. The last one repeats, and is drawn between it and its double.',
        }),
      ),
    ),
  }
}

function headerNames() {
  return {
    headers: Type.Optional(
      Type.Array(Type.String(), {
        description: 'The names of the headers that each delivery has for the bot.',
      }),
    ),
  }
}

function headerValues() {
  return Type.Unsafe<Readonly<Record<string, string>>>(
    Type.Object(
      {},
      {
        additionalProperties: Type.String({ maxLength: headerValueLengthMax }),
        maxProperties: headersMax,
        description: 'Headers of each delivery, by their names.',
      },
    ),
  )
}

/** Checked by the handler, so that no error shows a token. */
function foreignToken() {
  return Type.Optional(
    Type.String({
      description:
        'a token that another server has made (`--foreign-tokens`), `<bot_id>:` and 35 to 60 characters; absent for a new one',
    }),
  )
}

function issued() {
  return {
    bot_id: botId(),
    token: Type.String({ description: 'The complete token. It is shown only this once.' }),
  }
}

function polls() {
  return Type.Literal('take_over', {
    description:
      'A later getUpdates call ends the one that waits with an empty list, instead of 409.',
  })
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
    pending_bytes: bytes('Their bytes.'),
    next_update_id: count('The id of the next update.'),
    oldest_age: orNull(age('The age of the oldest of them, in seconds.')),
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
        expired: count('Updates that expired before they were delivered or fetched.'),
      },
      { $id: 'DeliveryCounts', description: 'Outcomes since the worker of the bot started.' },
    ),
    parked_keys: count('Ordering keys whose first update has failed and waits for its retry.'),
    next_attempt: orNull(preciseTime('When the webhook is tried next.')),
  }
}
