/** What to do after a check of an endpoint (endpoint-check.ts), in one sentence. Pure. */
import { unreachable } from '../kit/errors.ts'
import type { CheckStepName } from '../kit/states.ts'
import type { Endpoint } from './endpoint/endpoint.ts'
import { certificateFaultOf, type WebhookFailure } from './attempts/failure.ts'
import { webhookResponseTimeoutMs } from './limits.ts'

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
  const { host, port } = endpoint
  switch (failed.step) {
    case 'name':
      return `Check that the name ${host} is in DNS and that the name servers of this machine respond.`
    case 'addresses':
      return `Point ${host} to a public address, or start the server with an --allow-cidr for its address.`
    case 'connection':
      return failed.failure.message.startsWith('Proxy:')
        ? 'Check the proxy that --proxy names.'
        : `Check that the endpoint listens on port ${port}, and that no firewall keeps this server from it.`
    case 'tls':
      return tlsAdvice(failed.failure, host)
    case 'post':
      return status === 0 ? unansweredAdvice(failed.failure) : statusAdvice(status)
    default:
      return unreachable(failed.step)
  }
}

function tlsAdvice(failure: WebhookFailure, host: string): string {
  const fault = certificateFaultOf(failure) ?? 'other'
  switch (fault) {
    case 'expired':
      return 'Renew the certificate of the endpoint, and have its server load the new one.'
    case 'untrusted':
      return 'Use a certificate of a public authority together with its intermediate certificates, or upload your own with setWebhook.'
    case 'other_host':
      return `Use a certificate that names ${host}.`
    case 'other':
      return 'Check the TLS settings of the endpoint: TLS 1.2 or 1.3, with a certificate for servers and without a client certificate.'
    default:
      return unreachable(fault)
  }
}

function unansweredAdvice({ kind }: WebhookFailure): string {
  if (kind === 'tls_failed')
    return 'Let the endpoint accept connections without a client certificate.'
  if (kind === 'rejected') return 'Check that the endpoint speaks HTTP/1.1.'
  return kind === 'timed_out'
    ? `Have the endpoint respond within ${webhookResponseTimeoutMs / 1_000} seconds, before it does what takes long.`
    : 'Look into the log of the endpoint: it has closed the connection without a response.'
}

const overload: ReadonlySet<number> = new Set([429, 502, 503, 504])

function statusAdvice(status: number): string {
  if (status >= 300 && status < 400) {
    return 'Set the webhook to the address to which the endpoint redirects: deliveries do not follow redirects.'
  }
  if (status === 401 || status === 403) {
    return 'Have the endpoint expect the secret_token of setWebhook, and look whether something before it refuses this server.'
  }
  if (status === 404 || status === 405) {
    return 'Check the path of the URL: the endpoint takes no POST there.'
  }
  if (status === 410) {
    return 'Bring the endpoint back, or delete the webhook: after 410 for long, the server removes it.'
  }
  if (overload.has(status)) {
    return 'Check that the program of the endpoint runs behind its proxy, and that it is not overloaded.'
  }
  return status < 500
    ? 'Push a test update: the endpoint may refuse only the empty update of this check.'
    : 'Look into the log of the endpoint: its program has failed.'
}
