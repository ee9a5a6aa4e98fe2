/** What to do after a check of an endpoint (endpoint-check.ts), in one sentence. Pure. */
import { unreachable } from '../kit/errors.ts'
import type { CheckStepName } from '../kit/states.ts'
import type { Endpoint } from './endpoint/endpoint.ts'
import { certificateFaultOf, type WebhookFailure } from './attempts/failure.ts'
import { troubleAdvice, causeOfStatus, type TroubleCause } from './trouble-advice.ts'

/** How a check has ended. */
export interface CheckEnd {
  readonly endpoint: Pick<Endpoint, 'host' | 'port'>
  /** The step that has failed; undefined if none has. */
  readonly failed?: { readonly step: CheckStepName; readonly failure: WebhookFailure } | undefined
  /** 0 without a response. */
  readonly status: number
}

/** Returns one sentence for the operator. */
export function checkAdvice({ endpoint, failed, status }: CheckEnd): string {
  if (failed === undefined) return 'The endpoint takes updates; nothing needs to be done.'
  const cause = causeOf(failed, status)
  // What it refuses is the empty update of the check.
  if (cause === 'invalid') {
    return 'Push a test update: the endpoint may refuse only the empty update of this check.'
  }
  return troubleAdvice(cause, { host: endpoint.host, port: `port ${endpoint.port}` })
}

function causeOf({ step, failure }: NonNullable<CheckEnd['failed']>, status: number): TroubleCause {
  switch (step) {
    case 'name':
    case 'addresses':
      return step
    case 'connection':
      return failure.message.startsWith('Proxy:') ? 'proxy' : 'connection'
    case 'tls':
      return certificateCauses[certificateFaultOf(failure) ?? 'other']
    case 'post':
      return status === 0 ? unansweredCauses[failure.kind] : causeOfStatus(status)
    default:
      return unreachable(step)
  }
}

const certificateCauses = {
  expired: 'certificate_expired',
  untrusted: 'certificate_untrusted',
  other_host: 'certificate_other_host',
  other: 'tls',
} as const

const unansweredCauses = {
  tls_failed: 'client_certificate',
  rejected: 'no_http',
  timed_out: 'late',
  connection_failed: 'closed',
} as const
