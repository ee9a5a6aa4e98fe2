/**
 * What a push looks like on its way (docs/api.md): the path and headers of a single one, the two lines of a pair of a
 * stream. Made once, so that a repetition sends the same bytes. What cannot be written is refused as the server would
 * refuse it: with BAD_UPDATE or BAD_REQUEST, and nothing is sent.
 */
import { PostboteClientError } from './postbote-client-error.ts'
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
    body: updateText(update),
    headers: idempotencyKey === undefined ? {} : { 'idempotency-key': headerText(idempotencyKey) },
  }
}

/** With the order of fields that the server reads fastest. Put together by hand, 0.2 us instead of 0.35. */
export function pairText(botId: number, update: object, options: StreamPushOptions): string {
  const { orderingKey, ttlS, isTest, idempotencyKey } = options
  let head = `{"bot_id":${Number.isFinite(botId) ? botId : 'null'}`
  if (orderingKey !== undefined) head += `,"ordering_key":${JSON.stringify(orderingKey)}`
  if (idempotencyKey !== undefined) head += `,"idempotency_key":${JSON.stringify(idempotencyKey)}`
  if (ttlS !== undefined) head += `,"ttl":${wireNumber(ttlS)}`
  if (isTest === true) head += ',"test":true'
  return `${head}}\n${updateText(update)}\n`
}

/** A cycle and a BigInt cannot be written as JSON; an update that is none at all is the server's to refuse. */
function updateText(update: object): string {
  try {
    return JSON.stringify(update)
  } catch (cause) {
    const message = 'Bad update: expected what JSON.stringify can write, nothing was sent'
    throw new PostboteClientError('BAD_UPDATE', { message, cause })
  }
}

/** As JSON, NaN and Infinity would be null, and so as if not given. */
function wireNumber(ttlS: number): number {
  if (Number.isFinite(ttlS)) return ttlS
  throw badOption('ttlS: expected a whole number of seconds')
}

/** HTTP takes blanks off both ends of a header: a stream would push the same event under another key. */
function headerText(idempotencyKey: string): string {
  if (/^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(idempotencyKey)) return idempotencyKey
  throw badOption('idempotencyKey: expected printable ASCII characters, no blank at either end')
}

function badOption(message: string): PostboteClientError {
  return new PostboteClientError('BAD_REQUEST', { message })
}
