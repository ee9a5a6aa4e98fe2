/** Interprets an endpoint's HTTP responses in our own words. No other file reads a raw status. */
import { STATUS_CODES } from 'node:http'
import type { FailureKind } from './failure.ts'

/**
 * `delivered` is a success, `rejected` a failure that may be retried. `refused` means that the endpoint will never take
 * this update.
 */
export type Verdict = 'delivered' | 'rejected' | 'refused'

export interface ResponseHead {
  readonly status: number
  /** The Webhook-Delivery header. */
  readonly deliveryOrder: string | undefined
}

export function classifyResponse({ status, deliveryOrder }: ResponseHead): Verdict {
  if (isSuccess(status)) return 'delivered'
  return deliveryOrder !== undefined && hasAbort(deliveryOrder) ? 'refused' : 'rejected'
}

export function isSuccess(status: number): boolean {
  return status >= 200 && status < 300
}

/** True for 410. It may close the webhook, whatever happens to the update. */
export function isGone({ status }: ResponseHead): boolean {
  return status === 410
}

/** Those that say that an endpoint cannot take any update at the moment. */
export const sickStatuses: ReadonlySet<number> = new Set([429, 502, 503, 504])

/**
 * True if a failure says that the endpoint cannot take any update at the moment. Otherwise it may have rejected only this
 * one.
 */
export function isSick(kind: FailureKind, status: number): boolean {
  return kind !== 'rejected' || sickStatuses.has(status)
}

/** An endpoint that checks a secret_token most often refuses with these statuses because it is not that of setWebhook. */
const secretHint = ' (if it checks the secret_token, is it that of setWebhook?)'

/** Returns a status with the phrase that belongs to it, such as `404 Not Found`. */
export function statusWords(status: number): string {
  return `${status} ${STATUS_CODES[status] ?? ''}`.trim()
}

/**
 * Returns the `last_error_message` for a response that is not a success. What the endpoint itself says in its status line may
 * repeat a payload, and would remain in events and in the health of the webhook after the payload was erased.
 */
export function describeStatus(status: number): string {
  const hint = status === 401 || status === 403 ? secretHint : ''
  return `Wrong response from the webhook: ${statusWords(status)}${hint}`
}

/** True for `Webhook-Delivery: abort-message`, alone or in a list. */
function hasAbort(deliveryOrder: string): boolean {
  return deliveryOrder.split(',').some((order) => order.trim().toLowerCase() === 'abort-message')
}

export type GoneVerdict = 'unchanged' | 'changed' | 'closed'

/**
 * With 410 Gone an endpoint says that its bot has given it up. A single 410 may come from a deployment. So the first 410
 * starts a clock, any other response stops it, and only a 410 later than the timeout after the start closes the webhook.
 * The start is persisted; otherwise a server that restarts once a day would never close a webhook. Failures without a
 * response do not change the clock.
 */
export class GoneClock {
  readonly #timeoutMs: number
  #sinceMs: number | undefined

  constructor(timeoutMs: number, sinceMs: number | undefined) {
    this.#timeoutMs = timeoutMs
    this.#sinceMs = sinceMs
  }

  /** Wall time of the first 410. */
  get sinceMs(): number | undefined {
    return this.#sinceMs
  }

  answered(saysGone: boolean, nowMs: number): GoneVerdict {
    if (!saysGone) {
      if (this.#sinceMs === undefined) return 'unchanged'
      this.#sinceMs = undefined
      return 'changed'
    }
    if (this.#sinceMs === undefined) {
      this.#sinceMs = nowMs
      return 'changed'
    }
    return nowMs - this.#sinceMs > this.#timeoutMs ? 'closed' : 'unchanged'
  }
}
