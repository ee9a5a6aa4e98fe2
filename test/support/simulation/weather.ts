/**
 * The behavior of endpoints and of the network. A weather is a set of probabilities; each delivery, opening and look-up
 * draws its result from the present weather.
 */
import type { Luck } from './luck.ts'

export interface Weather {
  readonly name: string
  /** The typical time to a response. */
  readonly answerMs: number
  /** Fractions of the deliveries; all others succeed. */
  readonly rejected: number
  readonly gone: number
  readonly reset: number
  readonly silent: number
  readonly notSent: number
  /** Fractions of the responses that are not a success. */
  readonly retryAfter: number
  readonly abort: number
  /** Fraction of all responses after which the connection is not used again. */
  readonly closes: number
  readonly idleMs: number
  readonly openMs: number
  readonly openFails: number
  readonly openHangs: number
  readonly lookupMs: number
  readonly lookupFails: number
}

const fair: Weather = {
  name: 'fair',
  answerMs: 20,
  rejected: 0,
  gone: 0,
  reset: 0,
  silent: 0,
  notSent: 0,
  retryAfter: 0,
  abort: 0,
  closes: 0,
  idleMs: 60_000,
  openMs: 5,
  openFails: 0,
  openHangs: 0,
  lookupMs: 2,
  lookupFails: 0,
}

export const fairWeather = fair

/** An endpoint that its bot has given up. */
export const goneWeather: Weather = { ...fair, name: 'gone', gone: 1, retryAfter: 0.9 }

const weathers: readonly Weather[] = [
  fair,
  { ...fair, name: 'slow', answerMs: 3_000, openMs: 1_500, lookupMs: 800, closes: 0.05 },
  {
    ...fair,
    name: 'flaky',
    answerMs: 200,
    rejected: 0.2,
    gone: 0.02,
    reset: 0.1,
    silent: 0.03,
    notSent: 0.05,
    retryAfter: 0.2,
    abort: 0.05,
    closes: 0.2,
    idleMs: 2_000,
    openFails: 0.2,
    openHangs: 0.05,
    lookupFails: 0.1,
  },
  { ...fair, name: 'refusing', openFails: 1, reset: 1 },
  { ...fair, name: 'hanging', silent: 1, openHangs: 0.3 },
  { ...fair, name: 'opening hangs', openHangs: 1 },
  { ...fair, name: 'erring', rejected: 1, answerMs: 50 },
  { ...fair, name: 'throttling', rejected: 0.8, retryAfter: 1, answerMs: 50 },
  { ...fair, name: 'closing', closes: 1, idleMs: 500, notSent: 0.2 },
  { ...fair, name: 'aborting', rejected: 0.5, abort: 0.7 },
  { ...fair, name: 'half gone', gone: 0.7, retryAfter: 0.3 },
  goneWeather,
  { ...goneWeather, name: 'gone, and slow to open', gone: 0.9, closes: 0.3, openMs: 2_500 },
  { ...fair, name: 'nameless', lookupFails: 1, openFails: 0.5, closes: 0.5 },
]

/** Draws one weather or a mixture of two. */
export function drawWeather(luck: Luck): Weather {
  const one = luck.pick(weathers)
  if (luck.chance(0.6)) return one
  const other = luck.pick(weathers)
  const mixed = Object.entries(one).map(([name, value]) => [
    name,
    luck.chance(0.5) ? value : other[name as keyof Weather],
  ])
  return { ...(Object.fromEntries(mixed) as Weather), name: `${one.name} and ${other.name}` }
}

export type Answer =
  | {
      readonly kind: 'answer'
      readonly afterMs: number
      readonly status: number
      readonly retryAfter: string | undefined
      /** The Webhook-Delivery header. */
      readonly order: string | undefined
      readonly closes: boolean
    }
  /** It is unknown whether the request was read before the reset. */
  | { readonly kind: 'reset'; readonly afterMs: number }
  | { readonly kind: 'silent' }
  /** The socket was lost before anything was written. If `afterMs` is undefined, that is detected immediately. */
  | { readonly kind: 'notSent'; readonly afterMs: number | undefined }

const rejections = [400, 403, 404, 429, 500, 502, 503, 301, 302]

export function drawAnswer(luck: Luck, weather: Weather, wallMs: number): Answer {
  const afterMs = drawMs(luck, weather.answerMs)
  let left = luck.next()
  const is = (probability: number): boolean => {
    left -= probability
    return left < 0
  }
  if (is(weather.reset)) return { kind: 'reset', afterMs }
  if (is(weather.silent)) return { kind: 'silent' }
  if (is(weather.notSent)) return { kind: 'notSent', afterMs: luck.chance(0.5) ? 0 : undefined }
  const closes = luck.chance(weather.closes)
  const isRejected = is(weather.rejected)
  if (!isRejected && !is(weather.gone)) {
    const status = luck.pick([200, 200, 200, 201, 204])
    // These headers have no meaning in a successful response.
    const order = luck.chance(weather.abort) ? 'abort-message' : undefined
    return { kind: 'answer', afterMs, status, retryAfter: undefined, order, closes }
  }
  return {
    kind: 'answer',
    afterMs,
    status: isRejected ? luck.pick(rejections) : 410,
    retryAfter: luck.chance(weather.retryAfter) ? drawRetryAfter(luck, wallMs) : undefined,
    order: luck.chance(weather.abort) ? luck.pick(orders) : undefined,
    closes,
  }
}

const orders = ['abort-message', 'Abort-Message', 'later, abort-message', 'abort']

export function isAbort(order: string | undefined): boolean {
  return order !== undefined && /^(?:.*,\s*)?abort-message\s*(?:,|$)/i.test(order)
}

/** Draws a time of half to five times `typicalMs`, at least 1. */
export function drawMs(luck: Luck, typicalMs: number): number {
  return Math.max(1, Math.round(typicalMs * (0.5 + 4.5 * luck.next() ** 4)))
}

function drawRetryAfter(luck: Luck, wallMs: number): string {
  const seconds = luck.pick([1, 2, 7, 30, 30, 300, 3_600, 1_000_000])
  const date = (byS: number): string =>
    new Date((Math.floor(wallMs / 1_000) + byS) * 1_000).toUTCString()
  return luck.pick([
    String(seconds),
    String(seconds),
    date(seconds),
    date(-seconds),
    '0',
    '-1',
    '1.5',
    'soon',
    '',
  ])
}

/** Reads a Retry-After header as the standard says, independently of the server, to compare the results. */
export function expectedRetryAfterMs(
  value: string | undefined,
  wallMs: number,
): number | undefined {
  if (value === undefined || value === '') return undefined
  const delayMs = /^\d+$/.test(value)
    ? Number(value) * 1_000
    : value.endsWith(' GMT')
      ? Date.parse(value) - wallMs
      : 0
  return delayMs > 0 ? Math.min(delayMs, 3_600_000) : undefined
}
