/** The options of the client: their defaults, and the checks that reject unusable values. */
import { randomInt } from 'node:crypto'
import { type Clock, waitingClock } from '../../src/kit/clock.ts'
import type { PostboteClientError } from './postbote-client-error.ts'
import type { PushOptions, StreamPushOptions } from './pushed-update.ts'

/** Options of the PostboteClient constructor. */
export interface ClientOptions extends Partial<ClientSettings> {
  /** The URL of the private listener. Default: the first of `nodeUrls`, or http://127.0.0.1:8082. Not allowed together with `socketPath`. */
  readonly url?: string | URL
  /**
   * The private listeners of the nodes of a cluster, if each can be reached: streams then go to the node that has the shard of a
   * bot. Single calls, and the pairs of shards that none of them has, go to `url`. Default: none, because `url` is enough.
   */
  readonly nodeUrls?: readonly (string | URL)[]
  /** The path of the private listener's Unix socket, as an alternative to `url`. */
  readonly socketPath?: string
  /**
   * A key of the private API: the admin key, or one with the scopes of the calls. Leading and trailing white space, such as
   * the line break at the end of a file, is ignored.
   */
  readonly key: string
  /**
   * Called before each retry with the attempt that failed, for a log. An exception that it throws becomes an uncaught
   * exception of the process; the push goes on.
   */
  readonly onRetry?: (retry: Retry) => void
}

/** A failed attempt that the client repeats. */
export interface Retry {
  readonly error: PostboteClientError
  /** Number of failed attempts so far, from 1. */
  readonly attempt: number
  /** Time until the next attempt, in milliseconds. */
  readonly delayMs: number
  /** The bot of a pair that the server refused within a stream; the other pairs of the stream go on. Otherwise undefined. */
  readonly botId?: number
}

/** The options that have defaults; see `clientDefaults`. */
export interface ClientSettings {
  /** The time limit of one attempt in milliseconds, from its start to its response; in a stream, the limit without any result. */
  readonly timeoutMs: number
  /** Maximum number of retries of one call; in a stream, of retries in a row without a result. */
  readonly retries: number
  /** The first retry waits a random time of up to this many milliseconds; the bound doubles with each further retry. */
  readonly retryDelayMsMin: number
  /** The limit for the doubled bound, in milliseconds. A longer Retry-After of the server is honored, too, up to a minute. */
  readonly retryDelayMsMax: number
  /** Maximum number of connections that single calls use at a time. Streams have separate connections. */
  readonly connections: number
  /**
   * Whether a push without an idempotency key gets a random one. Without a key, a push whose outcome is unknown is not
   * repeated.
   */
  readonly hasIdempotencyKeys: boolean
}

/** The defaults. They allow eleven attempts in 21 s on average, which is longer than a restart of the server takes. */
export const clientDefaults: ClientSettings = {
  timeoutMs: 30_000,
  retries: 10,
  retryDelayMsMin: 100,
  retryDelayMsMax: 10_000,
  connections: 16,
  hasIdempotencyKeys: true,
}

/** Options of a stream. */
export interface StreamOptions {
  /** `ready` waits while this many pushes have no result. Default: 16,384. */
  readonly pairsMax?: number
  /** `ready` waits while the pushes without a result have this many bytes. Default: 16 MiB. */
  readonly bytesMax?: number
}

/** Options of `close`. */
export interface CloseOptions {
  /** Milliseconds after which pushes and calls without a result are rejected with CLOSED. Default: the client's `timeoutMs`. */
  readonly timeoutMs?: number
}

/**
 * Twice the pairs and bytes that the server holds of one stream (`streamPairsMax` and `streamBytesMax` in limits.ts),
 * so that more pairs are waiting when the server has written these.
 */
export const streamDefaults: Required<StreamOptions> = { pairsMax: 16_384, bytesMax: 16 * 2 ** 20 }

/** Dependencies that tests replace. */
export interface ClientSurroundings {
  readonly clock: Clock
  /** Returns a random number from 0 up to, but not including, 1. */
  readonly random: () => number
}

/** The real clock, whose timers keep the process alive, and a random number of 32 bits. */
export const clientSurroundings: ClientSurroundings = {
  clock: waitingClock,
  random: () => randomInt(2 ** 32) / 2 ** 32,
}

type Names<Options> = { readonly [Name in keyof Required<Options>]: true }

const ofClient: Names<ClientOptions> = {
  url: true,
  nodeUrls: true,
  socketPath: true,
  key: true,
  timeoutMs: true,
  retries: true,
  retryDelayMsMin: true,
  retryDelayMsMax: true,
  connections: true,
  hasIdempotencyKeys: true,
  onRetry: true,
}
const ofStream: Names<StreamOptions> = { pairsMax: true, bytesMax: true }
const ofClose: Names<CloseOptions> = { timeoutMs: true }
const ofStreamPush: Names<StreamPushOptions> = {
  orderingKey: true,
  ttlS: true,
  isTest: true,
  validate: true,
  idempotencyKey: true,
  traceparent: true,
}
const ofPush: Names<PushOptions> = { ...ofStreamPush, signal: true }

/**
 * The names of all push options. TypeScript rejects unknown names; in JavaScript a misspelled option would silently
 * have no effect, so every push checks for them.
 */
export const optionNames = { ofPush, ofStreamPush } as const

/** The names of options that exist. */
export type OptionNames = Readonly<Record<string, true>>

/**
 * Looks for an option that does not exist.
 *
 * @returns A message that names the first unknown option and lists the known ones; undefined if all exist.
 */
export function unknownOption(options: object, names: OptionNames): string | undefined {
  for (const name in options) {
    if (Object.hasOwn(names, name)) continue
    return `${name}: unknown option; expected one of ${Object.keys(names).join(', ')}`
  }
  return undefined
}

function refuseUnknown(options: object, names: OptionNames): void {
  const message = unknownOption(options, names)
  if (message !== undefined) throw new TypeError(message)
}

/**
 * Returns all settings, with defaults for those that are not given.
 *
 * @throws TypeError that names an option that does not exist or cannot be used.
 */
export function clientSettings(options: Partial<ClientSettings>): ClientSettings {
  refuseUnknown(options, ofClient)
  const {
    timeoutMs = clientDefaults.timeoutMs,
    retries = clientDefaults.retries,
    retryDelayMsMin = clientDefaults.retryDelayMsMin,
    retryDelayMsMax = clientDefaults.retryDelayMsMax,
    connections = clientDefaults.connections,
    hasIdempotencyKeys = clientDefaults.hasIdempotencyKeys,
  } = options
  wholeNumber('timeoutMs', timeoutMs, 1)
  wholeNumber('retries', retries, 0)
  wholeNumber('retryDelayMsMin', retryDelayMsMin, 0)
  wholeNumber('retryDelayMsMax', retryDelayMsMax, retryDelayMsMin)
  wholeNumber('connections', connections, 1)
  return { timeoutMs, retries, retryDelayMsMin, retryDelayMsMax, connections, hasIdempotencyKeys }
}

/**
 * Returns the bounds of a stream, with defaults for those that are not given.
 *
 * @throws TypeError that names an option that does not exist or cannot be used.
 */
export function streamSettings(options: StreamOptions): Required<StreamOptions> {
  refuseUnknown(options, ofStream)
  const { pairsMax = streamDefaults.pairsMax, bytesMax = streamDefaults.bytesMax } = options
  wholeNumber('pairsMax', pairsMax, 1)
  wholeNumber('bytesMax', bytesMax, 1)
  return { pairsMax, bytesMax }
}

/**
 * Returns the time limit of a `close`, in milliseconds.
 *
 * @throws TypeError that names an option that does not exist or cannot be used.
 */
export function closeTimeoutMs(options: CloseOptions, settings: ClientSettings): number {
  refuseUnknown(options, ofClose)
  const { timeoutMs = settings.timeoutMs } = options
  wholeNumber('timeoutMs', timeoutMs, 0)
  return timeoutMs
}

function wholeNumber(name: string, value: number, min: number): void {
  if (Number.isSafeInteger(value) && value >= min) return
  throw new TypeError(`${name}: expected a whole number from ${min}, got ${value}`)
}
