/**
 * Routes about the webhook of a bot: the webhook itself, its attempts and their history, pauses, retries at once, and the limit
 * of its rate (docs/use/api.md).
 */
import type { FastifyInstance } from 'fastify'
import { type NamedEndpoint, setWebhook, type WebhookParams } from '../../bot-api/set-webhook.ts'
import { changeWebhook } from '../../bot-api/change-webhook.ts'
import { readWebhookChange } from './read-webhook-change.ts'
import type { KeyShares } from '../../access/key-shares.ts'
import type { BotQueue } from '../../bots/bot-queue.ts'
import { deliveriesPerSecondMax, deliveriesPerSecondMin } from '../../api/limits.ts'
import type { ResultOf } from '../../api/operation.ts'
import { webhookOperations } from './webhook-operations.ts'
import { defaultTypesMask, typesOf } from '../../kit/update-types.ts'
import type { WebhookRecord } from '../../shard/records/bot-record.ts'
import { producerKey } from '../../shard/update-rows.ts'
import { outcomes } from '../../delivery/attempts/attempt-log.ts'
import type { EndpointCheck } from '../../delivery/endpoint-check.ts'
import type { HistoryMinute } from '../../delivery/delivery-history.ts'
import { hostOfWebhook } from '../../http/webhook-url.ts'
import { deliveryHistoryMinutes } from '../../delivery/limits.ts'
import { requestAccess } from '../../access/request-access.ts'
import { addOperations, type HandledCall, queueOf } from '../../private-api/add-operations.ts'
import { fieldValues } from '../../private-api/field-values.ts'
import type { PrivateApiParts } from '../../private-api/private-api-parts.ts'
import { readOrderingKey, refusal } from '../../api/update-options.ts'
import { Params } from '../../bot-api/params.ts'
import type { RegistrationLine } from './bot-operations.ts'

type WebhookJson = ResultOf<typeof webhookOperations.getWebhook>

interface Options extends Pick<PrivateApiParts, 'bots' | 'webhookConnectionsMax'> {
  /** The places of checks, if their callers may not have all of a worker's. */
  readonly checkPlaces?: KeyShares
}

export function addWebhookRoutes(app: FastifyInstance, options: Options): void {
  const { bots, webhookConnectionsMax, checkPlaces } = options
  const setPaused = async (
    call: HandledCall<typeof webhookOperations.pauseBot>,
    paused: boolean,
  ): Promise<{ readonly paused: boolean }> => {
    const { webhook } = await queueOf(bots, call)
    await webhook.setPaused(paused)
    return { paused }
  }
  addOperations(app, webhookOperations, {
    async setWebhook(call) {
      const queue = await queueOf(bots, call)
      const description = await setWebhook(queue, {
        ...webhookParams(call.body),
        webhookConnectionsMax,
        sealedTokenFor: (endpoint) => sealedTokenFor(endpoint, queue.settings.webhook),
      })
      return { ...webhookJson(queue), description }
    },
    async changeWebhook(call) {
      const queue = await queueOf(bots, call)
      await changeWebhook(queue, readWebhookChange(call.body), webhookConnectionsMax)
      return webhookJson(queue)
    },
    async getWebhook(call) {
      return webhookJson(await queueOf(bots, call))
    },
    async deleteWebhook(call) {
      const { webhook } = await queueOf(bots, call)
      return { description: await webhook.delete(call.query.drop_pending_updates === true) }
    },
    async listAttempts(call) {
      const { webhook } = await queueOf(bots, call)
      const attempts = webhook.attempts(call.query.limit).map((each) => fieldValues.attempt(each))
      return { attempts, request: webhook.request() ?? null }
    },
    async checkWebhook(call) {
      const { webhook } = await queueOf(bots, call)
      const free = checkPlaces?.take(requestAccess(call.request))
      try {
        return checkJson(await webhook.check())
      } finally {
        free?.()
      }
    },
    pauseBot: (call) => setPaused(call, true),
    resumeBot: (call) => setPaused(call, false),
    async retryBot(call) {
      const key = readOrderingKey(call.query.ordering_key)
      const { webhook } = await queueOf(bots, call)
      // A dead letter shows the key as it is stored.
      const retried = webhook.retryForOperator(
        key === undefined ? undefined : [key, producerKey(key)],
      )
      return { retried_keys: retried }
    },
    async getLimits(call) {
      const { settings } = await queueOf(bots, call)
      return { deliveries_per_second: settings.deliveriesPerSecond ?? null }
    },
    async setLimits(call) {
      const limit = deliveryLimit(call.body.deliveries_per_second)
      const queue = await queueOf(bots, call)
      await queue.setDeliveryLimit(limit)
      return { deliveries_per_second: limit }
    },
    getHistory: async (call) => lastHour(bots, await queueOf(bots, call)),
  })
}

/**
 * Nobody but the bot can give its token, which a reply of its endpoint needs. The one that it gave stays for the endpoint that
 * it named: with another one, a key could act as the bot at the upstream server.
 */
function sealedTokenFor(
  wanted: NamedEndpoint,
  stored: WebhookRecord | undefined,
): string | undefined {
  const isSameEndpoint =
    stored?.url === wanted.url &&
    stored.ipAddress === wanted.ipAddress &&
    stored.certificate === wanted.certificate
  return isSameEndpoint ? stored.sealedToken : undefined
}

/** What a webhook has but its secrets. The path of its URL may have the token of its bot. */
function webhookJson({ settings, webhook }: BotQueue): WebhookJson {
  const { webhook: stored, allowedTypes = defaultTypesMask } = settings
  const { ipAddress, maxConnections } = webhook.info()
  return {
    host: stored === undefined ? null : hostOfWebhook(stored.url),
    ip_address: stored?.ipAddress ?? ipAddress ?? null,
    max_connections: maxConnections ?? null,
    allowed_updates: allowedTypes === defaultTypesMask ? null : typesOf(allowedTypes),
    has_secret_token: stored?.secretToken !== undefined,
    has_custom_certificate: stored?.certificate !== undefined,
  }
}

/** Throws BAD_REQUEST. */
function deliveryLimit(value: unknown): number | null {
  if (value === null) return null
  const isInRange =
    typeof value === 'number' && value >= deliveriesPerSecondMin && value <= deliveriesPerSecondMax
  if (isInRange) return value
  const range = `${deliveriesPerSecondMin} to ${deliveriesPerSecondMax}`
  throw refusal('deliveries_per_second', `a number from ${range}, or null for no limit`, value)
}

function checkJson(check: EndpointCheck): ResultOf<typeof webhookOperations.checkWebhook> {
  const { addresses, advice, responseBody, responseHeaders, status, steps, tls } = check
  return {
    ok: steps.every(({ state }) => state !== 'failed'),
    advice,
    steps: steps.map(({ step, state, durationMs, text }) => ({
      step,
      state,
      duration_ms: durationMs === undefined ? null : Math.round(durationMs),
      text,
    })),
    addresses: addresses.map((each) => ({
      address: each.address,
      refusal: each.refusal ?? null,
    })),
    tls: tls === undefined ? null : tlsJson(tls),
    status: status === 0 ? null : status,
    response_headers: responseHeaders ?? null,
    response_body: responseBody ?? null,
  }
}

function tlsJson({
  validUntilMs,
  ...shown
}: NonNullable<EndpointCheck['tls']>): ResultOf<typeof webhookOperations.checkWebhook>['tls'] {
  const validUntil = validUntilMs === undefined ? null : Math.floor(validUntilMs / 1_000)
  return { ...shown, valid_until: validUntil }
}

function lastHour(
  bots: Options['bots'],
  queue: BotQueue,
): ResultOf<typeof webhookOperations.getHistory> {
  const { clock, webhook } = queue
  const { fetched, confirmed } = queue.polledMinutes()
  const pending = bots.pendingOf(queue).map((count) => count ?? null)
  return { ...historyJson(webhook.lastHour(), clock.nowMs()), fetched, confirmed, pending }
}

/** As columns, because a chart takes these. Minutes without deliveries have zeros, and a time without responses is null. */
function historyJson(
  minutes: readonly HistoryMinute[],
  nowMs: number,
): Omit<ResultOf<typeof webhookOperations.getHistory>, 'pending' | 'fetched' | 'confirmed'> {
  const first = Math.floor(nowMs / 60_000) - deliveryHistoryMinutes + 1
  const byMinute = new Map(minutes.map((each) => [each.minute, each]))
  const rows = Array.from({ length: deliveryHistoryMinutes }, (_, nth) => byMinute.get(first + nth))
  const countsOf = (index: number): number[] => rows.map((row) => row?.counts[index] ?? 0)
  return {
    from: first * 60,
    outcomes: Object.fromEntries(outcomes.map((outcome, index) => [outcome, countsOf(index)])),
    mean_ms: rows.map((row) => meanMs(row)),
    max_ms: rows.map((row) =>
      row === undefined || row.responses === 0 ? null : row.responseMsMax,
    ),
    delivery_p50_ms: rows.map((row) => row?.deliveryP50Ms ?? null),
    delivery_p99_ms: rows.map((row) => row?.deliveryP99Ms ?? null),
  }
}

function meanMs(row: HistoryMinute | undefined): number | null {
  if (row === undefined || row.responses === 0) return null
  return Math.round(row.responseMsSum / row.responses)
}

/** @param body - checked by its schema */
export function webhookParams(
  body: NonNullable<RegistrationLine['webhook']>,
): Pick<WebhookParams, 'params' | 'url'> {
  const { certificate, ...fields } = body
  const params = new Params()
  for (const [name, value] of Object.entries(fields)) params.add(name, value)
  if (certificate !== undefined) params.addFile('certificate', Buffer.from(certificate))
  return { params, url: body.url }
}
