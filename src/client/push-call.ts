/**
 * What a push looks like on its way (docs/api.md): the path and headers of a single one, the two lines of a pair of a
 * stream. Made once, so that a repetition sends the same bytes.
 */
import type { StreamPushOptions } from './pushed-update.ts'
import type { PrivateCall } from './server-connection.ts'

export function pushCall(botId: number, update: object, options: StreamPushOptions): PrivateCall {
  const { orderingKey, ttlS, isTest, idempotencyKey } = options
  const query = new URLSearchParams({
    ...(orderingKey === undefined ? {} : { ordering_key: orderingKey }),
    ...(ttlS === undefined ? {} : { ttl: `${ttlS}` }),
    ...(isTest === true ? { test: 'true' } : {}),
  }).toString()
  return {
    method: 'POST',
    path: `/v1/bots/${botId}/updates${query === '' ? '' : `?${query}`}`,
    body: JSON.stringify(update),
    headers: idempotencyKey === undefined ? {} : { 'idempotency-key': headerText(idempotencyKey) },
  }
}

/** With the order of fields that the server reads fastest. */
export function pairText(botId: number, update: object, options: StreamPushOptions): string {
  const { orderingKey, ttlS, isTest, idempotencyKey } = options
  const head = JSON.stringify({
    bot_id: botId,
    ordering_key: orderingKey,
    idempotency_key: idempotencyKey,
    ttl: ttlS,
    test: isTest === true ? true : undefined,
  })
  return `${head}\n${JSON.stringify(update)}\n`
}

/** undici would refuse it, too, with a text that shows the header. */
function headerText(idempotencyKey: string): string {
  if (/^[\x20-\x7e]*$/.test(idempotencyKey)) return idempotencyKey
  throw new TypeError('idempotencyKey: expected printable ASCII characters')
}
