/** The calls that register, show, change, list and remove bots. */
import { type Static, Type } from 'typebox'
import { fleetSorts, fleetStates } from '../kit/states.ts'
import type { ErrorCode } from '../errors.ts'
import { botIdMax, botIdMin, ttlSMax } from '../limits.ts'
import { fieldSchemas } from './field-schemas.ts'
import {
  connectionsCapMax,
  headersMax,
  headerValueLengthMax,
  listedPerPageMax,
  retryDelaySMax,
  retryDelaysMax,
} from './limits.ts'
import { errorSchema } from './error-schema.ts'
import { botPath, declareOperations, lines, type Unchanging } from './operation.ts'
import { relayFields } from './relay-operations.ts'
import { webhookFields } from './webhook-operations.ts'

const {
  botId,
  botNames,
  count,
  health,
  idempotencyKey,
  listAfter,
  listLimit,
  mode,
  orNull,
  percentileMs,
  overlap,
  preciseTime,
  shard,
  time,
} = fieldSchemas

/**
 * An old token may stay valid this long beside a new one: a week is long enough to roll a new token out and short enough
 * for a leaked one to end.
 */
const tokenOverlapSMax = 7 * 86_400
/** getMe returns such a name: a lone surrogate or a control character would break strict clients there. */
const namePattern = '^[^\\u0000-\\u001f\\u007f\\ud800-\\udfff]{1,64}$'

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
          relay: Type.Optional(relayFields()),
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
  listBots: {
    route: 'GET /v1/bots',
    scope: 'read',
    about: 'fleet',
    command: 'bots list',
    more: '#all-bots',
    summary: 'Lists bots with their state, all of them or a selection',
    description:
      'The list is in the order of ids. With `sort` it is in that order and has no next page, so `after` is refused.',
    query: () => ({
      after: listAfter(botIdMax),
      limit: listLimit(listedPerPageMax, 100),
      state: Type.Optional(
        Type.Enum([...fleetStates], {
          type: 'string',
          description: 'Selects bots in this state. docs/use/api.md explains the states.',
        }),
      ),
      sort: Type.Optional(
        Type.Enum([...fleetSorts], {
          type: 'string',
          description: 'The bots with the highest of these values come first.',
        }),
      ),
      prefix: Type.Optional(
        Type.String({
          pattern: '^[A-Za-z0-9_]{1,64}$',
          description:
            '1 to 64 letters, digits or underscores, with which the id or the username begins',
        }),
      ),
      search: Type.Optional(
        Type.String({
          pattern: namePattern,
          description:
            '1 to 64 characters, with which the id, the username or a word of the first name begins',
        }),
      ),
      details: Type.Optional(
        Type.Boolean({
          description: 'Whether each bot has its dead letters and its last activity, too.',
        }),
      ),
    }),
    result: () =>
      Type.Object(
        { bots: Type.Array(listedBot()), missing_shards: missingShards() },
        { $id: 'BotList', description: 'One page of the list.' },
      ),
  },
  getSummary: {
    route: 'GET /v1/summary',
    scope: 'read',
    about: 'fleet',
    command: 'summary',
    more: '#all-bots',
    summary: 'Returns sums over all bots',
    result: () => fleetSummary(),
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
        expired: count('Updates that expired before they were delivered or fetched.'),
      },
      { $id: 'DeliveryCounts', description: 'Outcomes since the worker of the bot started.' },
    ),
    parked_keys: count('Ordering keys whose first update has failed and waits for its retry.'),
    next_attempt: orNull(preciseTime('When the webhook is tried next.')),
  }
}

function listedBot() {
  return Type.Object(
    {
      ...botNames(),
      mode: orNull(mode()),
      pending: orNull(count('Updates that wait in the main queue.')),
      oldest_age: orNull(count('The age of the oldest of them, in seconds.')),
      paused: orNull(Type.Boolean({ description: 'Whether the operator has stopped deliveries.' })),
      health: orNull(health()),
      next_attempt: orNull(preciseTime('When the webhook is tried next.')),
      dead_letters: Type.Optional(orNull(count('With `details`: the number of dead letters.'))),
      last_taken: Type.Optional(
        orNull(time('With `details`: when an update was last confirmed or delivered, if known.')),
      ),
      last_poll: Type.Optional(
        orNull(time('With `details`: when the bot was last seen to poll, if known.')),
      ),
    },
    {
      $id: 'ListedBot',
      description:
        'A bot with the state of its main queue. The fields of the state are null while a worker starts.',
    },
  )
}

function fleetSummary() {
  const bots = (which: string) => count(`The number of ${which}.`)
  return Type.Object(
    {
      bots: bots('registered bots'),
      mode: Type.Object({
        polling: bots('bots without a webhook'),
        webhook: bots('bots with a webhook'),
      }),
      health: Type.Object({
        healthy: bots('healthy webhooks'),
        degraded: bots(
          'webhooks with some failures, bots with a paused relay, and bots whose polls confirm nothing, fight, or let updates expire',
        ),
        behind: bots('webhooks whose oldest update waits longer and longer'),
        failing: bots('failing webhooks'),
        paused: bots('paused webhooks'),
        unpolled: bots(
          'bots without a webhook that nobody polls although updates wait or have expired within the hour',
        ),
      }),
      paused: bots('paused bots, with or without a webhook'),
      pending: count('Updates that wait in the queues of all bots.'),
      pending_bytes: count('Their bytes.'),
      oldest_age: orNull(count('The age of the oldest of them, in seconds.')),
      oldest_bot_id: orNull(botId()),
      oldest_test: orNull(Type.Boolean({ description: 'Whether it is in the /test/ queue.' })),
      dead_letters: count('The number of dead letters.'),
      updates: Type.Object(
        {
          pushed: count('Updates that were stored.'),
          confirmed: count('Updates that bots have confirmed.'),
          delivered: count('Updates that webhooks have accepted.'),
          expired: count('Updates that expired.'),
          refused: count('Pushes that were refused.'),
        },
        { description: 'Counters of /metrics since the start of each node.' },
      ),
      delivery: Type.Object(
        { polling: deliveryPercentiles(), webhook: deliveryPercentiles() },
        {
          description:
            'How long updates waited from when they were stored until they were confirmed or delivered, in the last five minutes.',
        },
      ),
      workers: count('The number of workers of all nodes.'),
      shards: count('The number of shards.'),
      missing_shards: missingShards(),
    },
    { $id: 'FleetSummary', description: 'The sums.' },
  )
}

function deliveryPercentiles() {
  return Type.Object({ p50_ms: percentileMs('Half'), p99_ms: percentileMs('99 %') })
}

function missingShards() {
  return Type.Optional(
    Type.Array(shard(), {
      description: 'The shards whose bots are not covered, if there are any.',
    }),
  )
}
