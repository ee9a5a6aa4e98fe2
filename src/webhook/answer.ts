/** What an endpoint's HTTP answer means, in our words; the only place that looks at a raw status. */

import { STATUS_CODES } from 'node:http'
import { shortened } from './failure.ts'

/** `refused`: the endpoint has said that it will never take this update. */
export type Verdict = 'delivered' | 'rejected' | 'refused'

export interface AnswerHead {
  readonly status: number
  /** The Webhook-Delivery header. */
  readonly deliveryOrder: string | undefined
}

export function classifyAnswer({ status, deliveryOrder }: AnswerHead): Verdict {
  if (status >= 200 && status < 300) return 'delivered'
  return deliveryOrder !== undefined && hasAbort(deliveryOrder) ? 'refused' : 'rejected'
}

/** 410: may close the webhook, whatever becomes of the update. */
export function isGone({ status }: AnswerHead): boolean {
  return status === 410
}

/** The `last_error_message` of an answer that is no success. */
export function describeStatus(status: number, statusText: string): string {
  const printable = statusText.replaceAll(/[^\u0020-\u007e]/g, '').trim()
  const text = printable === '' ? (STATUS_CODES[status] ?? '') : printable
  return shortened(`Wrong response from the webhook: ${status} ${text}`.trim())
}

/** `Webhook-Delivery: abort-message`, perhaps one of a list. */
function hasAbort(deliveryOrder: string): boolean {
  return deliveryOrder.split(',').some((order) => order.trim().toLowerCase() === 'abort-message')
}
