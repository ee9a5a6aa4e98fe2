/** What an endpoint's HTTP answer means, in our words; the only place that looks at a raw status. */

import { STATUS_CODES } from 'node:http'
import { WebhookFailure } from './failure.ts'

/** `gone` is a `rejected` that may close the webhook. */
export type Verdict = 'delivered' | 'rejected' | 'gone'

export function classifyStatus(status: number): Verdict {
  if (status >= 200 && status < 300) return 'delivered'
  return status === 410 ? 'gone' : 'rejected'
}

/** The `last_error_message` of an answer that is no success. */
export function describeStatus(status: number, statusText: string): string {
  const printable = statusText.replaceAll(/[^\u0020-\u007e]/g, '').trim()
  const text = printable === '' ? (STATUS_CODES[status] ?? '') : printable
  return new WebhookFailure(`Wrong response from the webhook: ${status} ${text}`.trim()).message
}
