/** The fields of a webhook in JSON as setWebhook gets them. */
import type { WebhookParams } from '../../bot-api/set-webhook.ts'
import { Params } from '../../bot-api/params.ts'
import type { RegistrationLine } from './bot-operations.ts'

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
