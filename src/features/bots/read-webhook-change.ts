/** Reads what a PATCH of a webhook changes. Not by the schema of Fastify, which would take a text for a number, and 0 for null. */
import { allowedUpdatesMax, typeNameLengthMax } from '../../api/limits.ts'
import type { BodyOf } from '../../api/operation.ts'
import { refusal } from '../../api/update-options.ts'
import type { WebhookChange } from '../../bot-api/change-webhook.ts'
import type { webhookOperations } from './webhook-operations.ts'

type Fields = { readonly [Name in keyof BodyOf<typeof webhookOperations.changeWebhook>]: unknown }

/**
 * Reads the body of a PATCH.
 *
 * @throws BAD_REQUEST that names the first field that is refused
 */
export function readWebhookChange(body: Fields): WebhookChange {
  if (Object.keys(body).length === 0) throw refusal('body', 'at least one field')
  return {
    maxConnections: readConnections(body.max_connections),
    allowedUpdates: readTypes(body.allowed_updates),
    secretToken: readSecret(body.secret_token),
  }
}

function readConnections(value: unknown): WebhookChange['maxConnections'] {
  if (value === undefined || value === null) return value
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 1) return value
  throw refusal('max_connections', 'a whole number from 1 on, or null', value)
}

function readTypes(value: unknown): WebhookChange['allowedUpdates'] {
  if (value === undefined || value === null) return value
  const types: readonly unknown[] = Array.isArray(value) ? value : []
  const named = types.filter((each) => typeof each === 'string')
  const isList = Array.isArray(value) && named.length === types.length
  const isBounded =
    named.length <= allowedUpdatesMax && named.every(({ length }) => length <= typeNameLengthMax)
  if (isList && isBounded) return named
  const expected = `a list of at most ${allowedUpdatesMax} types of updates, or null`
  throw refusal('allowed_updates', expected, value)
}

/** No error shows it. */
function readSecret(value: unknown): WebhookChange['secretToken'] {
  if (value === undefined || value === null || (typeof value === 'string' && value !== ''))
    return value
  throw refusal('secret_token', 'a text that is not empty, or null')
}
