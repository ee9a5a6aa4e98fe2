/** What a client can be told: every option with its default, and what is wrong with a value that cannot be used. */
import { randomInt } from 'node:crypto'
import { type Clock, waitingClock } from '../clock.ts'
import type { PostboteClientError } from './postbote-client-error.ts'
import type { PushOptions, StreamPushOptions } from './pushed-update.ts'

export interface ClientOptions extends Partial<ClientSettings> {
  /** Of the private listener; http://127.0.0.1:8082 unless `socketPath` is given. */
  readonly url?: string | URL
  /** The private listener's Unix socket, instead of `url`. */
  readonly socketPath?: string
  /** The admin key. White space around it, as at the end of a file, does not count. */
  readonly key: string
  /** Is told of each attempt that failed and is repeated, for a log. What it throws is an uncaught exception. */
  readonly onRetry?: (retry: Retry) => void
}

export interface Retry {
  readonly error: PostboteClientError
  /** Of those that failed, this is number 1, 2, ... */
  readonly attempt: number
  /** Until the next attempt. */
  readonly delayMs: number
  /** Of a pair that was refused within a stream; the others go on. */
  readonly botId?: number
}

export interface ClientSettings {
  /** For one attempt: from its start to its answer; in a stream, without any result. */
  readonly timeoutMs: number
  /** How often a call is repeated at most; in a stream, how often in a row without a result. */
  readonly retries: number
  /** A random time up to this passes before the first repetition, up to twice as much before each next one. */
  readonly retryDelayMsMin: number
  /** What the doubled time grows to at most; a longer Retry-After of the server is waited for all the same. */
  readonly retryDelayMsMax: number
  /** For single calls, at a time; each stream has one of its own. */
  readonly connections: number
  /** Whether pushes without an idempotency key get one. Without, nothing is repeated whose outcome is unknown. */
  readonly hasIdempotencyKeys: boolean
}

/** Eleven attempts, in 21 s on the average: longer than the server takes for a restart. */
export const clientDefaults: ClientSettings = {
  timeoutMs: 30_000,
  retries: 10,
  retryDelayMsMin: 100,
  retryDelayMsMax: 10_000,
  connections: 16,
  hasIdempotencyKeys: true,
}

export interface StreamOptions {
  /** `ready` waits while so many pushes are under way. */
  readonly pairsMax?: number
  /** And while they have so many bytes. */
  readonly bytesMax?: number
}

export interface CloseOptions {
  /** After so long what is under way is given up; that of the client's options if not given. */
  readonly timeoutMs?: number
}

/** Twice what the server holds of one stream, so that it finds the next when it has written these. */
export const streamDefaults: Required<StreamOptions> = { pairsMax: 16_384, bytesMax: 16 * 2 ** 20 }

/** What tests replace. */
export interface ClientSurroundings {
  readonly clock: Clock
  /** From 0 up to 1. */
  readonly random: () => number
}

export const clientSurroundings: ClientSurroundings = {
  clock: waitingClock,
  random: () => randomInt(2 ** 32) / 2 ** 32,
}

type Names<Options> = { readonly [Name in keyof Required<Options>]: true }

const ofClient: Names<ClientOptions> = {
  url: true,
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
  idempotencyKey: true,
}
const ofPush: Names<PushOptions> = { ...ofStreamPush, signal: true }

/** TypeScript finds wrong names; in JavaScript they would be without effect, and nobody told. */
export const optionNames = { ofPush, ofStreamPush } as const

export function refuseUnknown(options: object, names: Readonly<Record<string, true>>): void {
  for (const name in options) {
    if (Object.hasOwn(names, name)) continue
    throw new TypeError(`${name}: no such option; there are ${Object.keys(names).join(', ')}`)
  }
}

/** All settings. Throws a TypeError that names the option. */
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

export function streamSettings(options: StreamOptions): Required<StreamOptions> {
  refuseUnknown(options, ofStream)
  const { pairsMax = streamDefaults.pairsMax, bytesMax = streamDefaults.bytesMax } = options
  wholeNumber('pairsMax', pairsMax, 1)
  wholeNumber('bytesMax', bytesMax, 1)
  return { pairsMax, bytesMax }
}

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
