/** The calls that register, show, change and remove bots. */
import { type Static, Type } from 'typebox'
import type { ErrorCode } from '../../kit/errors.ts'
import { botIdMax, botIdMin, ttlSMax } from '../../kit/limits.ts'
import { namePattern } from '../../api/words.ts'
import * as is from '../../api/words.ts'
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
      is.named('RegisteredBot', 'A new bot with its token.', {
        ...issued(),
        same_username: is.optional(
          is.list(
            is.botId(),
            'Other bots with this username, in any case. The server allows that; as far as its workers know and respond.',
          ),
        ),
      }),
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
          is.either([
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
      const test = is.named(
        'QueueState',
        'The state of one queue of a bot, and of its webhook.',
        queue,
      )
      return is.named('BotState', 'The bot with its queue; `test` is its /test/ queue.', {
        ...is.botNames(),
        validate: validation(),
        ...settings(),
        ...headerNames(),
        relay: is.optional(relay.relayFields()),
        ...queue,
        test,
      })
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
      is.only({
        validate: is.optional(validation()),
        first_name: is.optional(is.text(nameRules.first_name)),
        username: is.optional(is.text(nameRules.username)),
        ...settings(),
        headers: is.optional(is.orNull(headerValues())),
      }),
    result: () =>
      is.named('ChangedBot', 'The bot with its settings.', {
        bot_id: is.botId(),
        validate: validation(),
        ...settings(),
        ...headerNames(),
      }),
  },
  removeBot: {
    route: `DELETE ${botPath}`,
    scope: 'manage',
    about: 'bot',
    command: 'bots remove',
    done: 'removed bot {id}',
    summary: 'Removes a bot and its queues',
    result: () =>
      is.named('RemovedBot', 'The bot that was removed.', {
        bot_id: is.botId(),
        removed: is.exactly(true),
      }),
  },
  rotateToken: {
    route: `POST ${botPath}/token`,
    scope: 'manage',
    about: 'bot',
    command: 'bots token',
    done: '{token}',
    summary: 'Rotates the token: gives the bot a new one',
    description:
      'The old token stays valid for `overlap` seconds. Default: 0, not at all. With `--foreign-tokens`, `token` is one that another server has made for this bot.',
    body: () =>
      is.orNull(is.only({ overlap: is.overlap(tokenOverlapSMax), token: foreignToken() })),
    result: () => is.named('IssuedToken', 'A bot with its new token.', issued()),
  },
})

function registration() {
  return is.only({ ...registrationFields(), token: foreignToken() })
}

function registrationFields() {
  return {
    bot_id: is.optional(is.integer({ minimum: botIdMin, maximum: botIdMax })),
    first_name: is.text(nameRules.first_name),
    username: is.text(nameRules.username),
    polls: is.optional(is.orNull(polls())),
  }
}

/** A line of registrations. */
export type RegistrationLine = Unchanging<Static<ReturnType<typeof registrationLine>>>

/** Returns the schema of a line of registrations. */
export function registrationLine() {
  const { drop_pending_updates: _ofAnOldBot, ...webhook } = webhookFields()
  return is.onlyNamed(
    'RegistrationLine',
    'A bot with its key, and its webhook as for setWebhook.',
    {
      ...registrationFields(),
      idempotency_key: is.idempotencyKey(),
      webhook: is.optional(is.only(webhook)),
    },
  )
}

function keyedBot() {
  return is.named('KeyedBot', 'A new bot with its token.', {
    ...issued(),
    webhook_error: is.optional(
      is.described('Why the bot is registered without its webhook.', {
        code: is.text(),
        message: is.text(),
      }),
    ),
  })
}

function duplicateBot() {
  return is.named('DuplicateBot', 'The bot that was registered with this key before.', {
    bot_id: is.botId(),
    duplicate: is.exactly(true),
  })
}

/** What an operator may set for a bot; those that are not set are absent. */
function settings() {
  const delay = is.duration({ minimum: 0, maximum: retryDelaySMax })
  return {
    polls: is.optional(is.orNull(polls())),
    default_ttl: is.optional(
      is.orNull(
        is.duration(
          'Seconds after which an update expires whose producer names no time. Types that expire sooner still do.',
          { minimum: 1, maximum: ttlSMax },
        ),
      ),
    ),
    connections_cap: is.optional(
      is.orNull(
        is.integer('The most connections of its webhooks, whatever the bot asks for.', {
          minimum: 1,
          maximum: connectionsCapMax,
        }),
      ),
    ),
    retry_delays: is.optional(
      is.orNull(
        is.list(
          delay,
          'Seconds before the next attempt after each failure of an update. The last one repeats, and is drawn between it and its double.',
          { minItems: 1, maxItems: retryDelaysMax },
        ),
      ),
    ),
  }
}

function headerNames() {
  return {
    headers: is.optional(
      is.list(is.text(), 'The names of the headers that each delivery has for the bot.'),
    ),
  }
}

function headerValues() {
  return Type.Unsafe<Readonly<Record<string, string>>>(
    Type.Object(
      {},
      {
        additionalProperties: is.text({ maxLength: headerValueLengthMax }),
        maxProperties: headersMax,
        description: 'Headers of each delivery, by their names.',
      },
    ),
  )
}

/** Checked by the handler, so that no error shows a token. */
function foreignToken() {
  return is.optional(
    is.text(
      'a token that another server has made (`--foreign-tokens`), `<bot_id>:` and 35 to 60 characters; absent for a new one',
    ),
  )
}

function issued() {
  return {
    bot_id: is.botId(),
    token: is.text('The complete token. It is shown only this once.'),
  }
}

function polls() {
  return is.exactly(
    'take_over',
    'A later getUpdates call ends the one that waits with an empty list, instead of 409.',
  )
}

function validation() {
  return is.orNull(is.exactly('telegram', 'What each push is checked for.'))
}

/** What is known of the getUpdates calls of a queue without a webhook. */
function pollingState() {
  return is.named('PollingState', 'The getUpdates calls; absent with a webhook.', {
    last_poll: is.orNull(is.time('When the last one began, or ended if it has waited.')),
    fetched: is.count('Updates that polls got in the last hour.'),
    confirmed: is.count('Updates that polls confirmed in the last hour.'),
    client: is.orNull(pollClient('The program that polled last.')),
    client_before: is.orNull(pollClient('The last one before it that differs.')),
    conflicts: is.count('How often two programs have polled at the same time.'),
    last_conflict: is.orNull(is.time('When they did last.')),
  })
}

function pollClient(description: string) {
  return is.described(description, {
    user_agent: is.orNull(is.text('Its User-Agent, cut to 128 bytes.')),
    address: is.text('Its address, or the one that a reverse proxy reports.'),
  })
}

/** The fields of one queue. docs/use/api.md explains them. */
function queueFields() {
  const text = is.text()
  return {
    mode: is.mode(),
    pending: is.count('Updates that the bot has not confirmed, or its webhook has not accepted.'),
    pending_bytes: is.bytes('Their bytes.'),
    next_update_id: is.count('The id of the next update.'),
    oldest_age: is.orNull(is.age('The age of the oldest of them, in seconds.')),
    dead_letters: is.count('The number of dead letters.'),
    waiting_poll: is.flag('Whether a getUpdates call waits.'),
    polling: is.optional(pollingState()),
    webhook_host: is.orNull(text),
    max_connections: is.orNull(is.count('How many connections the webhook may have now.')),
    last_error_date: is.orNull(is.time('When the last attempt failed.')),
    last_error_message: is.orNull(is.reason()),
    paused: is.flag('Whether the operator has stopped deliveries.'),
    deliveries_per_second: is.orNull(
      is.number('The limit of deliveries.', { exclusiveMinimum: 0 }),
    ),
    health: is.orNull(is.health()),
    health_reason: is.orNull(is.reason()),
    deliveries: is.named('DeliveryCounts', 'Outcomes since the worker of the bot started.', {
      delivered: is.count('2xx responses.'),
      rejected: is.count('Other responses.'),
      timed_out: is.count('No response in time.'),
      connection_failed: is.count('Connections that failed.'),
      tls_failed: is.count('TLS handshakes that failed.'),
      refused_for_good: is.count('Updates that the endpoint rejected permanently.'),
      expired: is.count('Updates that expired before they were delivered or fetched.'),
    }),
    parked_keys: is.count('Ordering keys whose first update has failed and waits for its retry.'),
    next_attempt: is.orNull(is.preciseTime('When the webhook is tried next.')),
  }
}
