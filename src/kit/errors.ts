/**
 * The registry of all expected errors: code -> HTTP status -> description.
 *
 * The bot API returns `description`. Bot frameworks compare some of these texts literally, so they match the
 * reference server's. The private API returns `{"error":{"code","message"}}`. Codes are stable and never reused;
 * texts may change. A failure that is not a `PostboteError` is a bug, and the client gets INTERNAL.
 *
 * `%s` in a description stands for the detail that the code raising the error provides.
 */
import { unavailableRetryAfterS } from './limits.ts'

interface ErrorKind {
  readonly status: number
  readonly description: string
  /** When the client may try again, unless the code that raises the error says so. Every 503 and 507 has one. */
  readonly retryAfterS?: number
}

/** A client may try again after this time if the shard of its bot is set aside: an operator must repair the shard first. */
const brokenShardRetryAfterS = 60
/** A client whose body found no room may try again after this time: at 10 Mbit/s a body of 4 MiB arrives in less. */
export const bodyRetryAfterS = 5
/**
 * A producer may try again after this time if there is no room for an update. Chosen: the bot or the operator makes room, which
 * takes longer than a restart, and a producer that asks each minute costs nothing.
 */
const fullRetryAfterS = 60

export const errorKinds = {
  // The private API.
  BAD_REQUEST: { status: 400, description: 'Bad Request: %s' },
  BAD_UPDATE: { status: 400, description: 'Bad update: %s' },
  UNAUTHORIZED: {
    status: 401,
    description: 'Expected a valid key as "Authorization: Bearer <key>"',
  },
  BAD_LINK: {
    status: 401,
    description:
      'Expected a valid link to this page as "Authorization: Bearer <secret>": ask for a new one',
  },
  LINK_LACKS_RIGHT: { status: 403, description: 'This link does not allow this: it lacks %s' },
  BAD_HOST: {
    status: 403,
    description:
      'Expected the Host header to be an IP address, localhost, or a name from --admin-host',
  },
  CROSS_SITE_REQUEST: {
    status: 403,
    description:
      'Expected the header "Postbote-Dashboard" with a call that may change something and has a session instead of a key',
  },
  KEY_LACKS_SCOPE: { status: 403, description: 'This key lacks the scope %s' },
  KEY_LACKS_BOT: { status: 403, description: 'This key is for some bots only, and %s' },
  KEY_EXCEEDED: {
    status: 403,
    description: 'A key cannot make or rotate a key that may do more than itself: expected %s',
  },
  BOT_NOT_SERVED: {
    status: 421,
    description: 'This server does not serve this bot, because its --filter excludes the id',
  },
  UNKNOWN_BOT: { status: 404, description: 'No bot with the id %s is registered' },
  UNKNOWN_KEY: { status: 404, description: 'There is no key with this id' },
  KEY_EXISTS: { status: 409, description: 'There is already a key with this name' },
  TOO_MANY_ACCESS_KEYS: {
    status: 409,
    description: 'Too many keys: %s; revoke one',
  },
  UNKNOWN_LINK: { status: 404, description: 'This bot has no link with this id' },
  TOO_MANY_LINKS: {
    status: 409,
    description: 'Too many links of this bot: %s; revoke one, or wait until one ends',
  },
  UNKNOWN_SIGNING_KEY: { status: 404, description: 'This bot has no signing key with this id' },
  TOO_MANY_SIGNING_KEYS: {
    status: 409,
    description: 'This bot already has four signing keys: delete one, or wait until one expires',
  },
  UNKNOWN_DEAD_LETTER: {
    status: 404,
    description: 'This bot has no dead letter with the update id %s',
  },
  UNKNOWN_UPDATE: {
    status: 404,
    description: 'No update of this bot with the id %s is pending or kept',
  },
  UPDATE_PENDING: {
    status: 409,
    description: 'This update is pending, so it is delivered anyway: nothing was replayed',
  },
  UNKNOWN_REPLAY: { status: 404, description: 'This bot has no replay with this id' },
  NO_RELAY: { status: 404, description: 'This bot has no relay' },
  TOO_MANY_REPLAYS: {
    status: 409,
    description: 'Too many replays of this bot run: %s; wait until one has ended, or cancel one',
  },
  UPDATE_IN_DELIVERY: {
    status: 409,
    description:
      'This update is being delivered to the webhook at this moment: try again, or pause the bot before',
  },
  BOT_EXISTS: { status: 409, description: 'A bot with the id %s is already registered' },
  IDEMPOTENCY_MISMATCH: {
    status: 409,
    description:
      'This idempotency key was used with a different body within the last 24 hours: use a new key',
  },
  UPDATE_TOO_LARGE: { status: 413, description: 'Update too large: %s' },
  TOO_MANY_KEYS: {
    status: 429,
    description:
      'This bot has used all of its idempotency keys for today: try again after midnight UTC',
  },
  KEY_OVER_LIMIT: {
    status: 429,
    description: 'This key has used up its %s, and nothing was done: try again',
  },
  KEYS_UNAVAILABLE: {
    status: 503,
    description:
      'This worker does not know the keys of the server yet, and nothing was done: try again',
    retryAfterS: unavailableRetryAfterS,
  },
  STORE_UNAVAILABLE: {
    status: 503,
    description:
      'The storage of this bot is not available at the moment and nothing was stored: try again',
    retryAfterS: unavailableRetryAfterS,
  },
  SHARD_BROKEN: {
    status: 503,
    description:
      'The storage of this bot is damaged and set aside, and nothing was done: "broken_shards" of /readyz names the file, and docs/run/trouble.md describes the repair',
    retryAfterS: brokenShardRetryAfterS,
  },
  OUTCOME_UNKNOWN: {
    status: 503,
    description:
      'It is unknown whether this was done: make the call again, and send a push again with the same idempotency key',
    retryAfterS: unavailableRetryAfterS,
  },
  QUEUE_FULL: {
    status: 507,
    description: 'The queue of this bot is full: %s',
    retryAfterS: fullRetryAfterS,
  },
  DISK_LOW: {
    status: 507,
    description:
      'The disk has less free space than --disk-reserve, or the database is larger than --database-max-size',
    retryAfterS: fullRetryAfterS,
  },
  ID_SPACE_EXHAUSTED: {
    status: 507,
    description:
      'The update ids of this bot are used up: its queue must be emptied before it accepts updates again',
    retryAfterS: fullRetryAfterS,
  },

  // The bot API.
  INVALID_TOKEN: { status: 401, description: 'Unauthorized: invalid token specified' },
  UNKNOWN_TOKEN: { status: 401, description: 'Unauthorized' },
  UNALLOWED_TOKEN: { status: 421, description: 'Misdirected Request: unallowed token specified' },
  NOT_FOUND: { status: 404, description: 'Not Found' },
  METHOD_NOT_FOUND: { status: 404, description: 'Not Found: method not found' },
  VERB_NOT_ALLOWED: {
    status: 405,
    description: 'Method Not Allowed: expected %s, nothing was done',
  },
  POLL_TERMINATED: {
    status: 409,
    description:
      'Conflict: terminated by other getUpdates request; make sure that only one bot instance is running',
  },
  POLL_TERMINATED_BY_WEBHOOK: {
    status: 409,
    description: 'Conflict: terminated by setWebhook request',
  },
  WEBHOOK_ACTIVE: {
    status: 409,
    description:
      "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first",
  },
  NO_WEBHOOK: {
    status: 404,
    description: 'This bot has no webhook; its own program sets one with setWebhook',
  },
  WEBHOOK_SUPERSEDED: { status: 409, description: 'Conflict: terminated by other setWebhook' },
  INVALID_WEBHOOK_URL: { status: 400, description: 'Bad Request: invalid webhook URL specified' },
  BAD_WEBHOOK: { status: 400, description: 'Bad Request: bad webhook: %s' },
  REQUEST_TOO_LARGE: { status: 413, description: 'Request Entity Too Large: %s' },
  TOO_MANY_REQUESTS: { status: 429, description: 'Too Many Requests: retry after %s' },
  HEADERS_TOO_LARGE: {
    status: 431,
    description:
      'Request Header Fields Too Large: expected at most 64 KiB, with the bot in the first 8 KiB',
  },
  REQUEST_TIMEOUT: {
    status: 408,
    description: 'Request Timeout: the request took too long to arrive',
  },
  UPSTREAM_FAILED: { status: 502, description: 'Bad Gateway: the upstream server %s' },
  INTERNAL: { status: 500, description: 'Internal Server Error' },
  UNAVAILABLE: {
    status: 503,
    description: 'Service Unavailable: restart in progress, try again',
    retryAfterS: unavailableRetryAfterS,
  },
  BOT_UNAVAILABLE: {
    status: 503,
    description: 'Service Unavailable: this bot cannot be served at the moment, try again later',
    retryAfterS: brokenShardRetryAfterS,
  },
  TOO_MANY_CONNECTIONS: {
    status: 503,
    description:
      'Service Unavailable: the server has too many connections and nothing was done, try again',
    retryAfterS: unavailableRetryAfterS,
  },
  TOO_MANY_BODIES: {
    status: 503,
    description:
      'Service Unavailable: the server has too many request bodies in memory and nothing was done, retry after %s',
    retryAfterS: bodyRetryAfterS,
  },
} as const satisfies Record<string, ErrorKind>

export type ErrorCode = keyof typeof errorKinds

export interface ErrorDetails {
  /** Replaces `%s` in the description, or follows it. Never contains a token, a secret or a key. */
  readonly detail?: string
  /** In seconds, an integer of at least 1. Sent as `parameters.retry_after` and in the Retry-After header. */
  readonly retryAfterS?: number
  readonly cause?: unknown
}

/** An expected failure with a stable code. */
export class PostboteError extends Error {
  readonly code: ErrorCode
  readonly status: number
  readonly retryAfterS: number | undefined

  constructor(code: ErrorCode, details: ErrorDetails = {}) {
    const kind: ErrorKind = errorKinds[code]
    const retryAfterS = details.retryAfterS ?? kind.retryAfterS
    const detail = details.detail ?? (retryAfterS === undefined ? '' : `${retryAfterS}`)
    const { description } = kind
    const message = description.includes('%s')
      ? description.replace('%s', () => detail)
      : description + (details.detail ?? '')
    super(message, { cause: details.cause })
    this.name = 'PostboteError'
    this.code = code
    this.status = kind.status
    this.retryAfterS = retryAfterS
  }
}

/** Returns an expected error as it is. Any other error is a bug: returns INTERNAL with that error as its cause. */
export function toPostboteError(error: unknown): PostboteError {
  return error instanceof PostboteError ? error : new PostboteError('INTERNAL', { cause: error })
}

/** Closes an exhaustive switch: the call does not compile while a case is missing. */
export function unreachable(value: never): never {
  throw new Error(`unexpected value ${JSON.stringify(value)}`)
}

/** The message of an error, or the text of anything else that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
