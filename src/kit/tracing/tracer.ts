/**
 * The spans of updates whose producers trace them, and the places in their traces that endpoints get.
 *
 *     producer's span
 *       +-- push      from the push to the sync
 *             +-- wait     until the first attempt to deliver, or until a getUpdates call confirmed it
 *             +-- deliver  one for each attempt, whose place the endpoint gets
 *
 * Whether a trace is sampled is the decision of its producer. A span names the bot and the update, and how it ended; it never
 * has a payload, a token or the path of a URL.
 */
import {
  isSampled,
  newSpanId,
  nextTraceparent,
  onlySpanId,
  spanIdOf,
  traceIdOf,
  type TracedUpdate,
} from './traceparent.ts'

/** A span that has ended. All times are wall time in milliseconds. */
export interface Span {
  readonly name: 'push' | 'wait' | 'deliver'
  readonly traceId: string
  readonly spanId: string
  readonly parentId: string
  readonly startMs: number
  readonly endMs: number
  readonly isError: boolean
  readonly attributes: Readonly<Record<string, string | number | boolean>>
}

/** A push that has its result. */
export interface PushSpan extends TracedBot {
  readonly traceparent: string
  readonly queue: number
  /** Undefined if it stored nothing. */
  readonly updateId: number | undefined
  /** `stored`, `duplicate`, `filtered`, or the code of an error. */
  readonly result: string
  readonly isError: boolean
  readonly startMs: number
  readonly endMs: number
}

/** An update that waits no longer. */
export interface WaitSpan extends TracedBot, TracedUpdate {
  readonly mode: 'polling' | 'webhook'
  readonly startMs: number
  readonly endMs: number
}

/** An attempt that has ended. */
export interface DeliverSpan extends TracedBot, TracedUpdate {
  /** How the attempt ended. */
  readonly outcome: string
  /** 0 without a response. */
  readonly status: number
  readonly host: string
  readonly startMs: number
  readonly endMs: number
}

interface TracedBot {
  readonly botId: number
  readonly isTest: boolean
}

export class Tracer {
  readonly #report: ((span: Span) => void) | undefined

  /** @param report - receives the spans of sampled traces; undefined: places in traces are passed on, and that is all */
  constructor(report?: (span: Span) => void) {
    this.#report = report
  }

  /** Whether spans are wanted at all. */
  get hasSpans(): boolean {
    return this.#report !== undefined
  }

  /** Returns the place in the trace that the endpoint gets with an attempt. */
  attempt(traceparent: string): string {
    return nextTraceparent(traceparent)
  }

  pushed(push: PushSpan): void {
    const { traceparent, queue, updateId, result, isError, startMs, endMs } = push
    if (this.#report === undefined || !isSampled(traceparent)) return
    const update = updateId === undefined ? undefined : { traceparent, queue, updateId }
    this.#report({
      name: 'push',
      traceId: traceIdOf(traceparent),
      // Only the push that stored the update is the parent of its other spans.
      spanId: update && result === 'stored' ? onlySpanId('push', update) : newSpanId(),
      parentId: spanIdOf(traceparent),
      startMs,
      endMs,
      isError,
      attributes: { ...attributesOf(push, updateId), 'postbote.result': result },
    })
  }

  waited(wait: WaitSpan): void {
    const { traceparent, startMs, endMs, mode } = wait
    if (this.#report === undefined || !isSampled(traceparent)) return
    this.#report({
      name: 'wait',
      traceId: traceIdOf(traceparent),
      spanId: onlySpanId('wait', wait),
      parentId: onlySpanId('push', wait),
      startMs,
      endMs,
      isError: false,
      attributes: { ...attributesOf(wait, wait.updateId), 'postbote.mode': mode },
    })
  }

  /** @param deliver - its `traceparent` is the place that the endpoint got */
  delivered(deliver: DeliverSpan): void {
    const { traceparent, outcome, status, host, startMs, endMs } = deliver
    if (this.#report === undefined || !isSampled(traceparent)) return
    const response = status === 0 ? {} : { 'http.response.status_code': status }
    this.#report({
      name: 'deliver',
      traceId: traceIdOf(traceparent),
      spanId: spanIdOf(traceparent),
      parentId: onlySpanId('push', deliver),
      startMs,
      endMs,
      isError: outcome !== 'delivered',
      attributes: {
        ...attributesOf(deliver, deliver.updateId),
        'postbote.result': outcome,
        'server.address': host,
        ...response,
      },
    })
  }
}

function attributesOf(
  { botId, isTest }: TracedBot,
  updateId: number | undefined,
): Span['attributes'] {
  const bot = { 'postbote.bot_id': botId, 'postbote.is_test': isTest }
  return updateId === undefined ? bot : { ...bot, 'postbote.update_id': updateId }
}
