/**
 * Changes a part of a webhook for the operator, who sees neither the path of its URL nor its secret. Only what does not say where
 * deliveries go: a secret that stayed with another endpoint would be told to that one, and so would the path with another address.
 *
 * A new secret is set as setWebhook would, so the endpoint is verified first. The rest takes effect as it is, also while the
 * endpoint is down, and nothing that is known of updates and attempts is forgotten.
 */
import type { BotQueue } from '../bots/bot-queue.ts'
import { withAllowedTypes } from '../bots/settings-change.ts'
import { PostboteError } from '../kit/errors.ts'
import { type AllowedTypes, allowedUpdatesOfWebhook } from '../queue/allowed-updates.ts'
import type { QueueSettings, WebhookRecord } from '../shard/records/bot-record.ts'
import { typesNote } from './params-note.ts'
import { readSecretToken, usualConnections } from './set-webhook.ts'

/** What is absent stays, and null stands for what a setWebhook without the field sets. */
export interface WebhookChange {
  readonly maxConnections?: number | null | undefined
  readonly allowedUpdates?: readonly string[] | null | undefined
  readonly secretToken?: string | null | undefined
}

/**
 * Changes the webhook of a queue. When it resolves, the change is on disk and in effect.
 *
 * @param connectionsMax - the value of `--max-webhook-connections`
 * @throws NO_WEBHOOK, BAD_REQUEST, and with a secret whatever `WebhookControl.set` throws
 */
export async function changeWebhook(
  queue: BotQueue,
  change: WebhookChange,
  connectionsMax: number,
): Promise<void> {
  const { allowedUpdates } = change
  const typesText = allowedUpdates === undefined ? undefined : JSON.stringify(allowedUpdates)
  const types = typesText === undefined ? undefined : allowedUpdatesOfWebhook(typesText)
  const secret = readSecretToken(change.secretToken ?? undefined)
  const connections = connectionsOf(change, connectionsMax)
  const next = (settings: QueueSettings): QueueSettings & { readonly webhook: WebhookRecord } => {
    const { webhook } = settings
    if (webhook === undefined) throw new PostboteError('NO_WEBHOOK')
    const maxConnections = connections ?? webhook.maxConnections
    return { ...withTypes(settings, types), webhook: { ...webhook, maxConnections } }
  }
  if (change.secretToken === undefined) {
    await queue.changeSettings((settings) => ({ settings: next(settings) }))
    queue.webhook.changeDeliveries()
  } else {
    const { webhook, allowedTypes = 'default' } = next(queue.settings)
    await queue.webhook.set({
      webhook: withSecret(webhook, secret),
      allowedTypes,
      dropsPending: false,
    })
  }
  if (typesText !== undefined) queue.note('allowed_updates', typesNote(typesText))
}

function withTypes(settings: QueueSettings, types: AllowedTypes | undefined): QueueSettings {
  return types === undefined ? settings : withAllowedTypes(settings, types)
}

/** A number above the limit of the server counts as this. */
function connectionsOf({ maxConnections }: WebhookChange, max: number): number | undefined {
  if (maxConnections === undefined) return undefined
  return Math.min(maxConnections ?? usualConnections, max)
}

/** What is known of the endpoint belongs to the webhook of before. */
function withSecret(
  {
    secretToken: _before,
    verifiedAddress: _address,
    failures: _failures,
    goneSinceMs: _since,
    ...rest
  }: WebhookRecord,
  secretToken: string | undefined,
): WebhookRecord {
  return secretToken === undefined ? rest : { ...rest, secretToken }
}
