/**
 * setWebhook (protocol.md §6): reads and checks the parameters, so that syntax errors are reported before anything is connected
 * to. bots/webhook-control.ts does the rest. The private API sets webhooks by the same rules (features/bots/webhook-routes.ts).
 */
import assert from 'node:assert/strict'
import type { BotQueue } from '../bots/bot-queue.ts'
import type { SetWebhookRequest } from '../bots/settings-change.ts'
import { PostboteError } from '../kit/errors.ts'
import { allowedUpdatesOfWebhook } from '../queue/allowed-updates.ts'
import { readCertificates } from '../delivery/endpoint/certificate.ts'
import type { WebhookRecord } from '../shard/records/bot-record.ts'
import { badWebhook } from '../delivery/endpoint/endpoint.ts'
import { tidyUrl } from '../http/webhook-url.ts'
import { isPlainAddress } from '../http/ip-address.ts'
import type { Method, MethodCall, ResultReply } from './method-call.ts'
import { paramsNote, typesNote } from './params-note.ts'
import type { Params } from './params.ts'

/** Of a webhook that names no number. [ref] */
export const usualConnections = 40
const ownParams = [
  'url',
  'certificate',
  'ip_address',
  'max_connections',
  'allowed_updates',
  'drop_pending_updates',
  'secret_token',
] as const

/**
 * Whether a call without a url says something that is likely one: in a body that is not read, in a file, under another name, or
 * within another value. It would delete the webhook.
 */
function mayMeanUrl(params: Params): boolean {
  if (params.unreadBody !== undefined) return true
  if (params.unusedFiles().some((name) => name !== 'certificate')) return true
  for (const name of params.names()) {
    if (name === 'url') continue
    if (/url|:\/\//i.test(name) || params.text(name)?.includes('://') === true) return true
  }
  return false
}

function misplacedUrl(): PostboteError {
  const detail =
    'expected the url in the query, in JSON, in a form or in multipart/form-data, as "url", got something else that may be one; nothing was changed'
  return new PostboteError('BAD_REQUEST', { detail })
}

/**
 * protocol.md §6. Without a url it does what deleteWebhook does.
 *
 * @param webhookConnectionsMax - the value of `--max-webhook-connections`
 * @param sealToken - returns the form of the token that may be stored; absent unless replies of webhooks are sent to an upstream
 *   server
 */
export function makeSetWebhook(
  webhookConnectionsMax: number,
  sealToken?: (token: string) => string,
): Method {
  return async ({ params, queue, token }: MethodCall): Promise<ResultReply> => {
    const url = params.text('url')
    if (url === undefined) {
      if (mayMeanUrl(params)) throw misplacedUrl()
      const dropsPending = params.boolean('drop_pending_updates')
      queue.note('setWebhook', paramsNote('setWebhook', params, ownParams))
      return { result: 'true', description: await queue.webhook.delete(dropsPending) }
    }
    const sealedTokenFor = (): string | undefined => sealToken?.(token)
    const webhook = { params, url, webhookConnectionsMax, sealedTokenFor }
    const description = await setWebhook(queue, webhook)
    return { result: 'true', description }
  }
}

/** A webhook as its parameters tell it. */
export interface WebhookParams {
  /** The value of `--max-webhook-connections`. */
  readonly webhookConnectionsMax: number
  /** Those of setWebhook. */
  readonly params: Params
  readonly url: string
  /** Returns the token of the bot as it is stored with this endpoint; undefined if it is not. */
  sealedTokenFor?(endpoint: NamedEndpoint): string | undefined
}

/** What a bot says of its endpoint. */
export type NamedEndpoint = Pick<WebhookRecord, 'url' | 'ipAddress' | 'certificate'>

/** Sets the webhook of a queue and returns the description of protocol.md §6. Rejects as `WebhookControl.set`. */
export async function setWebhook(queue: BotQueue, webhook: WebhookParams): Promise<string> {
  const description = await queue.webhook.set(readWebhook(webhook))
  const { params } = webhook
  queue.note('allowed_updates', typesNote(params.text('allowed_updates') ?? ''))
  queue.note('setWebhook', paramsNote('setWebhook', params, ownParams))
  return description
}

/** Checks the syntax of a webhook. Throws BAD_WEBHOOK, BAD_REQUEST or REQUEST_TOO_LARGE. */
export function readWebhook(webhook: WebhookParams): SetWebhookRequest {
  const { params, webhookConnectionsMax } = webhook
  assert(webhookConnectionsMax > 0, 'a webhook may have a connection')
  const url = tidyUrl(webhook.url)
  const certificate = certificateOf(params)
  const secretToken = readSecretToken(params.text('secret_token'))
  const ipAddress = params.text('ip_address')
  if (ipAddress !== undefined && !isPlainAddress(ipAddress)) {
    throw badWebhook('Invalid IP address specified')
  }
  const dropsPending = params.boolean('drop_pending_updates')
  const allowedTypes = allowedUpdatesOfWebhook(params.text('allowed_updates'))
  const maxConnections = params.integer('max_connections', {
    default: Math.min(usualConnections, webhookConnectionsMax),
    min: 1,
    max: webhookConnectionsMax,
  })
  const endpoint = {
    ...(ipAddress === undefined ? {} : { ipAddress }),
    ...(certificate === undefined ? {} : { certificate: readCertificates(certificate) }),
  }
  const sealedToken = webhook.sealedTokenFor?.({ url, ...endpoint })
  return {
    dropsPending,
    allowedTypes,
    webhook: {
      url,
      maxConnections,
      ...(secretToken === undefined ? {} : { secretToken }),
      ...(sealedToken === undefined ? {} : { sealedToken }),
      ...endpoint,
    },
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

/**
 * Checks a secret_token.
 *
 * @throws BAD_REQUEST
 */
export function readSecretToken(secretToken: string | undefined): string | undefined {
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
