/**
 * setWebhook (protocol.md §6): reads and checks the parameters, so that syntax errors are reported before anything is connected
 * to. bots/webhook-control.ts does the rest.
 */
import { PostboteError } from '../../errors.ts'
import { allowedUpdatesOfWebhook } from '../../queue/filter.ts'
import { readCertificates } from '../../webhook/certificate.ts'
import { badWebhook } from '../../webhook/endpoint.ts'
import { isPlainAddress } from '../../net/ip-address.ts'
import type { Method, MethodCall, ResultReply } from '../method-call.ts'
import { typesNote } from '../types-note.ts'
import type { Params } from '../params.ts'

const connectionsDefault = 40

export interface SetWebhookOptions {
  /** The value of `--max-webhook-connections`. */
  readonly webhookConnectionsMax: number
  /** Returns the form of the token that may be stored. Set if replies of webhooks are sent to an upstream server. */
  readonly sealToken?: ((token: string) => string) | undefined
}

/** protocol.md §6. Without a url it does what deleteWebhook does. */
export function makeSetWebhook(options: SetWebhookOptions): Method {
  return async ({ params, queue, token }: MethodCall): Promise<ResultReply> => {
    const url = params.text('url')
    const dropsPending = params.boolean('drop_pending_updates')
    if (url === undefined) {
      return { result: 'true', description: await queue.webhook.delete(dropsPending) }
    }
    const certificate = certificateOf(params)
    const secretToken = secretTokenOf(params)
    const ipAddress = params.text('ip_address')
    if (ipAddress !== undefined && !isPlainAddress(ipAddress)) {
      throw badWebhook('Invalid IP address specified')
    }
    const types = params.text('allowed_updates')
    const description = await queue.webhook.set({
      dropsPending,
      allowedTypes: allowedUpdatesOfWebhook(types),
      webhook: {
        url,
        maxConnections: params.integer('max_connections', {
          default: Math.min(connectionsDefault, options.webhookConnectionsMax),
          min: 1,
          max: options.webhookConnectionsMax,
        }),
        ...(secretToken === undefined ? {} : { secretToken }),
        ...(options.sealToken === undefined ? {} : { sealedToken: options.sealToken(token) }),
        ...(ipAddress === undefined ? {} : { ipAddress }),
        ...(certificate === undefined ? {} : { certificate: readCertificates(certificate) }),
      },
    })
    queue.note('allowed_updates', typesNote(types ?? ''))
    return { result: 'true', description }
  }
}

/** Refuses a text, and an `attach://` without its part: the webhook would be set without the certificate, and its deliveries would fail. */
function certificateOf(params: Params): Buffer | undefined {
  const file = params.file('certificate')
  if (file === undefined && params.text('certificate') !== undefined) {
    throw badWebhook('certificate must be uploaded as a file')
  }
  return file
}

/** A secret_token may have this many characters. [ref] */
const webhookSecretLengthMax = 256

function secretTokenOf(params: Params): string | undefined {
  const secretToken = params.text('secret_token')
  if (secretToken === undefined) return undefined
  if (secretToken.length > webhookSecretLengthMax) {
    throw new PostboteError('BAD_REQUEST', { detail: 'secret token is too long' })
  }
  if (!/^[A-Za-z0-9_-]+$/.test(secretToken)) {
    throw new PostboteError('BAD_REQUEST', {
      detail: 'secret token contains unallowed characters',
    })
  }
  return secretToken
}
