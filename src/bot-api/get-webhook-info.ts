import type { BotQueue } from '../bots/bot-queue.ts'
import { defaultTypesMask, typesOf } from '../kit/update-types.ts'
import type { Method, MethodCall, ResultReply } from './method-call.ts'

/** protocol.md §6. Has official fields only, because strictly typed clients reject others. */
export function getWebhookInfo(call: MethodCall): ResultReply {
  return { result: JSON.stringify(webhookInfo(call)) }
}

/**
 * The same with `--health-in-webhook-info`: the author of the bot sees why nothing arrives, without a key.
 *
 * @param healthOf - returns the sentence about the health of a queue
 */
export function getWebhookInfoWith(healthOf: (queue: BotQueue) => Promise<string>): Method {
  return async (call) => {
    const health = await healthOf(call.queue)
    return { result: JSON.stringify({ ...webhookInfo(call), health }) }
  }
}

function webhookInfo({ queue }: MethodCall): object {
  const { webhook, allowedTypes = defaultTypesMask } = queue.settings
  const info = queue.webhook.info()
  return {
    url: webhook?.url ?? '',
    has_custom_certificate: webhook?.certificate !== undefined,
    pending_update_count: queue.updates.pendingCount,
    ip_address: webhook === undefined ? undefined : (webhook.ipAddress ?? info.ipAddress),
    last_error_date: info.lastErrorDateS,
    last_error_message: info.lastErrorMessage,
    max_connections: info.maxConnections,
    allowed_updates: allowedTypes === defaultTypesMask ? undefined : typesOf(allowedTypes),
  }
}
