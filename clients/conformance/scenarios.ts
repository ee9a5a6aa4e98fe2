/** Scenarios of a server without shards: what goes wrong at the server, and what the client has to make of it (docs/use/client.md). */
import { gzipSync } from 'node:zlib'
import { jobKey, type PrintedError } from './job.ts'
import type { Action, Scenario, ShardsAction } from './scenario.ts'

/** Delays that a test can wait for. */
export const quick = { retryDelayMsMin: 5, retryDelayMsMax: 100 }
const all = ['single', 'stream', 'pushAll'] as const
export const store: Action = { kind: 'store' }
const ignore: Action = { kind: 'ignore' }

/** A server that does not know the call. */
const notFound: ShardsAction = {
  status: 404,
  body: { error: { code: 'NOT_FOUND', message: 'Not found' } },
}

/** What a scenario is if its row does not say otherwise: everything is stored. */
export const plain: Omit<Scenario, 'name'> = {
  modes: all,
  isLong: false,
  count: 40,
  bots: [101, 102, 103, 104],
  job: { client: quick },
  runs: 1,
  place: 'fake server',
  isDripping: false,
  isOpenEnded: false,
  isStalled: false,
  resultDelayMs: 0,
  action: () => store,
  requestAction: () => undefined,
  shardsAction: () => notFound,
  hints: 'none',
  callAction: () => store,
  outcomes: () => ['stored'],
  callOutcomes: () => 'stored',
  overtakenMax: 0,
  attemptsMax: 100,
  connectionsMax: Infinity,
  retryCode: undefined,
  retriesMax: Infinity,
  elapsedMs: { min: 0, max: 170_000 },
}
/** The base of the scenarios whose faults a client recovers from: everything is stored, in order, and retries are reported. */
export const long: Omit<Scenario, 'name'> = {
  ...plain,
  isLong: true,
  // A short run may lose the results of one chunk twenty times in a row.
  job: { client: { ...quick, retries: 30 } },
  retryCode: 'CONNECTION_LOST',
}

/** Builds an error; by default the same push fails again, and stores nothing. */
function error(code: string, rest: Partial<PrintedError> = {}): PrintedError {
  return { code, isRetryable: false, isOutcomeUnknown: false, ...rest }
}

/** A server that was never reached: the last attempt ends by 2.9 s. Two full attempts of 2 s would take 4 s. */
const unreachable: Pick<Scenario, 'count' | 'job' | 'outcomes' | 'retryCode' | 'elapsedMs'> = {
  // All of them at a time.
  count: 16,
  job: { client: {} },
  outcomes: () => [error('CONNECTION_FAILED', { isRetryable: true })],
  retryCode: 'CONNECTION_FAILED',
  elapsedMs: { min: 0, max: 3_700 },
}

/** What a faulty server or another program answers to each of the first two requests, before it stores anything. */
function atFirst(raw: string): Pick<Scenario, 'requestAction' | 'retryCode'> {
  return {
    requestAction: (nth) => (nth <= 2 ? { raw } : undefined),
    retryCode: 'CONNECTION_LOST',
  }
}

/** A draw that depends on its numbers alone, from 0 up to, but not including, 100. */
function drawn(n: number, attempt: number): number {
  return Number(BigInt.asUintN(32, BigInt(n * 31 + attempt) * 2_654_435_761n) % 100n)
}

const repeating = { code: 'BAD_UPDATE', status: 400, message: `Expected no ${jobKey}` }
/** The error of a push that may be stored. */
const lost = error('CONNECTION_LOST', { isRetryable: true, isOutcomeUnknown: true })
const compressed = gzipSync('{"update_id":1}').toString('latin1')

/** They run with each map of `shard-scenarios.ts`, too. */
export const scenarios: readonly Scenario[] = [
  { ...plain, name: 'no fault', isLong: true, attemptsMax: 1 },
  {
    ...long,
    name: 'lost responses: stored, and the connection ends before the result',
    action: ({ isTurn, attempt }) =>
      isTurn && attempt === 1 ? { kind: 'cut', isStored: true, at: 'start' } : store,
  },
  {
    ...long,
    name: 'cut streams: the response ends in the middle of a line',
    modes: ['stream', 'pushAll'],
    action: ({ isTurn, attempt }) =>
      isTurn && attempt === 1 ? { kind: 'cut', isStored: true, at: 'line' } : store,
  },
  {
    ...long,
    name: 'killed workers: all connections are reset, and new ones for a moment',
    action: ({ isTurn, attempt }) =>
      isTurn && attempt === 1 ? { kind: 'cut', isStored: false, at: 'start', downMs: 30 } : store,
  },
  {
    ...long,
    name: 'reloads: the server ends streams normally',
    modes: ['stream', 'pushAll'],
    retryCode: undefined,
    action: ({ isTurn, attempt }) => (isTurn && attempt === 1 ? { kind: 'end' } : store),
  },
  {
    ...long,
    name: 'the store of one bot is unavailable again and again',
    overtakenMax: Infinity,
    retryCode: 'STORE_UNAVAILABLE',
    action: ({ isTurn, isFirstBot, attempt }) =>
      isTurn && isFirstBot && attempt < 3
        ? { kind: 'refuse', code: 'STORE_UNAVAILABLE', status: 503 }
        : store,
  },
  {
    ...plain,
    name: 'a bot that is refused for a moment waits with its later pushes, and the others go on',
    modes: ['stream'],
    count: 400,
    // A pair is overtaken only by those that are under way with it.
    job: { client: { retryDelayMsMin: 30, retryDelayMsMax: 30 }, stream: { pairsMax: 8 } },
    overtakenMax: 8,
    retryCode: 'STORE_UNAVAILABLE',
    action: ({ isTurn, isFirstBot, attempt }) =>
      isTurn && isFirstBot && attempt === 1
        ? { kind: 'refuse', code: 'STORE_UNAVAILABLE', status: 503 }
        : store,
  },
  {
    ...long,
    name: 'unknown outcomes: an update is stored, and its result is OUTCOME_UNKNOWN',
    retryCode: 'OUTCOME_UNKNOWN',
    overtakenMax: Infinity,
    outcomes: () => ['stored', 'duplicate'],
    action: ({ isTurn, isFirstBot, attempt }) =>
      isTurn && isFirstBot && attempt === 1
        ? { kind: 'refuse', code: 'OUTCOME_UNKNOWN', status: 503, isStored: true }
        : store,
  },
  {
    ...plain,
    name: 'slow results: no more than pairsMax pushes are under way',
    modes: ['stream', 'pushAll'],
    count: 2_000,
    job: { client: quick, stream: { pairsMax: 256 } },
    resultDelayMs: 20,
    attemptsMax: 1,
  },
  {
    ...plain,
    name: 'slow results: no more than 4 single pushes have a connection',
    modes: ['single'],
    count: 200,
    job: { client: { ...quick, connections: 4 }, concurrency: 32 },
    resultDelayMs: 5,
    attemptsMax: 1,
    connectionsMax: 4,
  },
  {
    ...plain,
    name: 'the same keys again: everything is a duplicate',
    job: { client: quick, keyPrefix: 'event-' },
    runs: 2,
    outcomes: (_n, _mode, run) => [run === 1 ? 'stored' : 'duplicate'],
  },
  {
    ...plain,
    name: 'single pairs fail alone, and are sent once',
    attemptsMax: 1,
    action: ({ n }) => {
      if (n % 8 === 1) return { kind: 'refuse', code: 'BAD_UPDATE', status: 400 }
      if (n % 8 === 3) return { kind: 'refuse', code: 'QUEUE_FULL', status: 507, retryAfterS: 1 }
      return n % 8 === 5 ? { kind: 'filter' } : store
    },
    outcomes: (n, mode) => {
      if (n % 8 === 1) return [error('BAD_UPDATE', { status: 400 })]
      if (n % 8 === 3) {
        // The results of a stream have no Retry-After.
        const head = mode === 'single' ? { retryAfterS: 1 } : {}
        return [error('QUEUE_FULL', { status: 507, ...head })]
      }
      return [n % 8 === 5 ? 'filtered' : 'stored']
    },
  },
  {
    ...plain,
    name: 'a push over the limit of its key is repeated after Retry-After, not before',
    modes: ['single'],
    retryCode: 'KEY_OVER_LIMIT',
    action: ({ n, attempt }) =>
      n % 10 === 3 && attempt === 1
        ? { kind: 'refuse', code: 'KEY_OVER_LIMIT', status: 429, retryAfterS: 1 }
        : store,
    elapsedMs: { min: 1_000, max: 6_000 },
  },
  {
    ...plain,
    name: 'a stream over the limit of its key is opened again after Retry-After, not before',
    modes: ['stream', 'pushAll'],
    retryCode: 'KEY_OVER_LIMIT',
    requestAction: (nth) =>
      nth === 1 ? { code: 'KEY_OVER_LIMIT', status: 429, retryAfterS: 1 } : undefined,
    elapsedMs: { min: 1_000, max: 6_000 },
  },
  {
    ...plain,
    name: 'a queue with too many keys until tomorrow is not tried again',
    attemptsMax: 1,
    action: () => ({ kind: 'refuse', code: 'TOO_MANY_KEYS', status: 429, retryAfterS: 3_600 }),
    outcomes: (_n, mode) => {
      const head = mode === 'single' ? { retryAfterS: 3_600 } : {}
      return [error('TOO_MANY_KEYS', { status: 429, isRetryable: true, ...head })]
    },
  },
  {
    ...plain,
    name: 'a wrong key is not tried again',
    attemptsMax: 1,
    requestAction: () => ({ code: 'UNAUTHORIZED', status: 401 }),
    outcomes: () => [error('UNAUTHORIZED', { status: 401 })],
  },
  {
    ...plain,
    name: 'a proxy that answers 502 for the server is repeated',
    retryCode: 'UNEXPECTED_ANSWER',
    requestAction: (nth) => (nth <= 2 ? { status: 502, html: '<h1>Bad gateway</h1>' } : undefined),
  },
  {
    ...plain,
    name: 'the 404 of another server is not repeated',
    attemptsMax: 1,
    requestAction: () => ({ status: 404, html: '<h1>Not found</h1>' }),
    outcomes: () => [error('UNEXPECTED_ANSWER', { status: 404 })],
  },
  {
    ...plain,
    name: 'a result that is not JSON is unexpected, and the others go on',
    attemptsMax: 1,
    action: ({ n }) => (n === 7 ? { kind: 'garble' } : store),
    outcomes: (n) => [n === 7 ? error('UNEXPECTED_ANSWER', { isOutcomeUnknown: true }) : 'stored'],
  },
  {
    ...plain,
    name: 'retries are used up',
    job: { client: { ...quick, retries: 2 } },
    attemptsMax: 3,
    retryCode: 'CONNECTION_LOST',
    action: () => ({ kind: 'cut', isStored: true, at: 'start' }),
    outcomes: () => [lost],
  },
  {
    ...plain,
    name: 'without idempotency keys, a lost response is reported and not repeated',
    job: { client: { ...quick, hasIdempotencyKeys: false }, concurrency: 1 },
    action: ({ n, attempt }) =>
      n === 7 && attempt === 1 ? { kind: 'cut', isStored: true, at: 'start' } : store,
    outcomes: (n, mode) => {
      if (mode === 'single') return [n === 7 ? lost : 'stored']
      // The outcome of the pairs that were under way with it is unknown, too.
      return n === 7 ? [lost] : ['stored', lost]
    },
  },
  {
    ...plain,
    name: 'silence ends with TIMEOUT',
    count: 16,
    job: { client: { ...quick, timeoutMs: 300, retries: 1 } },
    attemptsMax: 2,
    retryCode: 'TIMEOUT',
    action: () => ignore,
    outcomes: () => [error('TIMEOUT', { isRetryable: true, isOutcomeUnknown: true })],
    elapsedMs: { min: 600, max: 6_000 },
  },
  {
    ...plain,
    name: 'close ends what has no result in its time',
    modes: ['single', 'stream'],
    job: { client: quick, closeMs: 300, concurrency: 16 },
    count: 16,
    attemptsMax: 1,
    action: () => ignore,
    outcomes: () => [error('CLOSED', { isOutcomeUnknown: true })],
    elapsedMs: { min: 300, max: 6_000 },
  },
  {
    ...plain,
    name: 'an address where nobody listens is reported within 3 s',
    place: 'nobody',
    ...unreachable,
  },
  {
    ...plain,
    name: 'a server that accepts connections and never takes part in TLS is reported within 3 s',
    place: 'mute TLS',
    modes: ['single', 'stream'],
    ...unreachable,
  },
  {
    ...plain,
    name: 'a server that resets the handshake of TLS is reported within 3 s',
    place: 'reset TLS',
    modes: ['single', 'stream'],
    ...unreachable,
  },
  {
    ...plain,
    name: 'a server with the certificate of another is reported within 3 s',
    place: 'wrong certificate',
    modes: ['single', 'stream'],
    ...unreachable,
  },
  {
    ...plain,
    name: 'every option of a push arrives',
    job: {
      client: quick,
      keyPrefix: 'event-',
      options: {
        orderingKey: 'a "key" & ü',
        ttlS: 3_600,
        isTest: true,
        validate: 'telegram',
        traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
      },
    },
    attemptsMax: 1,
  },
  {
    ...long,
    name: 'faults of every kind, as they are drawn',
    overtakenMax: Infinity,
    outcomes: () => ['stored', 'duplicate'],
    action: ({ n, attempt, isFirstBot, isTurn }) => {
      if (!isTurn && n % 1_009 !== 13) return store
      const draw = drawn(n, attempt)
      if (draw < 15) return { kind: 'cut', isStored: true, at: 'line' }
      if (draw < 30) return { kind: 'cut', isStored: true, at: 'line', isEnded: true }
      if (draw < 40) return { kind: 'cut', isStored: draw < 35, at: 'start' }
      if (draw < 45) return { kind: 'cut', isStored: true, at: 'start', downMs: 10 }
      if (draw < 60) return { kind: 'end' }
      if (draw < 80 && isFirstBot) {
        return { kind: 'refuse', code: 'OUTCOME_UNKNOWN', status: 503, isStored: draw < 70 }
      }
      return store
    },
  },
  {
    ...long,
    name: 'lost responses over TLS',
    place: 'TLS',
    action: ({ isTurn, attempt }) =>
      isTurn && attempt === 1 ? { kind: 'cut', isStored: true, at: 'start' } : store,
  },
  {
    ...plain,
    name: 'a server that repeats the key in the text of an error',
    attemptsMax: 1,
    action: () => ({ ...repeating, kind: 'refuse' }),
    outcomes: () => [error('BAD_UPDATE', { status: 400 })],
  },
  {
    ...plain,
    name: 'a server that refuses requests with the key in the text of its error',
    attemptsMax: 1,
    requestAction: () => repeating,
    outcomes: () => [error('BAD_UPDATE', { status: 400 })],
  },
  { ...plain, name: 'an endless head', ...atFirst(`HTTP/1.1 200 OK\r\na: ${'a'.repeat(200_000)}`) },
  { ...plain, name: 'an answer that is not HTTP', ...atFirst('SSH-2.0-OpenSSH_9.2p1\r\n') },
  {
    ...plain,
    name: 'a body that is longer than it ends',
    ...atFirst('HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{"update_id'),
  },
  {
    ...plain,
    name: 'a chunk whose size is no number',
    ...atFirst('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n{"update_id":1}\n\r\n'),
  },
  {
    ...plain,
    name: 'a redirection is not followed',
    attemptsMax: 0,
    requestAction: () => ({
      raw: 'HTTP/1.1 307 Temporary Redirect\r\nlocation: /v1/updates\r\nconnection: close\r\ncontent-length: 0\r\n\r\n',
    }),
    outcomes: () => [error('UNEXPECTED_ANSWER', { status: 307, isOutcomeUnknown: true })],
  },
  {
    ...plain,
    name: 'a response without a body',
    attemptsMax: 0,
    requestAction: () => ({ raw: 'HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n' }),
    outcomes: () => [error('UNEXPECTED_ANSWER', { status: 204, isOutcomeUnknown: true })],
  },
  {
    ...plain,
    name: 'the page of another server',
    attemptsMax: 0,
    requestAction: () => ({ status: 200, html: '<h1>Welcome</h1>\n'.repeat(100) }),
    outcomes: () => [error('UNEXPECTED_ANSWER', { isOutcomeUnknown: true })],
  },
  {
    ...plain,
    name: 'a compressed response that nobody asked for',
    modes: ['single'],
    attemptsMax: 0,
    requestAction: () => ({
      raw: `HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-encoding: gzip\r\ncontent-length: ${compressed.length}\r\n\r\n${compressed}`,
    }),
    outcomes: () => [error('UNEXPECTED_ANSWER', { isOutcomeUnknown: true })],
  },
  {
    ...plain,
    name: 'results arrive byte by byte',
    isDripping: true,
    attemptsMax: 1,
  },
  {
    ...plain,
    name: 'a response that comes twice is not that of the next push',
    modes: ['single'],
    job: { client: quick, concurrency: 1 },
    attemptsMax: 1,
    action: ({ n }) => (n % 4 === 1 ? { kind: 'double' } : store),
  },
  {
    ...plain,
    name: 'without idempotency keys, a stream that ends within a result is not taken for whole',
    modes: ['stream', 'pushAll'],
    job: { client: { ...quick, hasIdempotencyKeys: false } },
    action: ({ n, attempt }) =>
      n === 7 && attempt === 1 ? { kind: 'cut', isStored: true, at: 'line', isEnded: true } : store,
    outcomes: (n) => (n === 7 ? [lost] : ['stored', lost]),
  },
  {
    ...plain,
    name: 'without idempotency keys, a stream that only its connection ends is not taken for whole',
    modes: ['stream', 'pushAll'],
    isOpenEnded: true,
    job: { client: { ...quick, hasIdempotencyKeys: false } },
    action: ({ n, attempt }) =>
      n === 7 && attempt === 1
        ? { kind: 'cut', isStored: true, at: 'start', isEnded: true }
        : store,
    outcomes: (n) => (n === 7 ? [lost] : ['stored', lost]),
  },
  {
    ...plain,
    name: 'a server that reads nothing',
    count: 16,
    isStalled: true,
    // More than the buffers of a connection take.
    job: { client: { ...quick, timeoutMs: 300, retries: 1 }, text: 'a'.repeat(1_000_000) },
    attemptsMax: 0,
    retryCode: 'TIMEOUT',
    outcomes: () => [error('TIMEOUT', { isRetryable: true, isOutcomeUnknown: true })],
    elapsedMs: { min: 600, max: 6_000 },
  },
  { ...plain, name: 'calls about bots', modes: ['calls'], attemptsMax: 1 },
  {
    ...plain,
    name: 'calls that changed nothing are repeated',
    modes: ['calls'],
    retryCode: 'STORE_UNAVAILABLE',
    callAction: (_call, attempt) =>
      attempt === 1 ? { kind: 'refuse', code: 'STORE_UNAVAILABLE', status: 503 } : store,
  },
  {
    ...plain,
    name: 'calls that may have changed something are reported and not repeated',
    modes: ['calls'],
    retryCode: 'CONNECTION_LOST',
    callAction: (call, attempt) =>
      call === 'getBot' && attempt > 1 ? store : { kind: 'cut', isStored: true, at: 'start' },
    callOutcomes: (call) => (call === 'getBot' ? 'stored' : lost),
  },
]
