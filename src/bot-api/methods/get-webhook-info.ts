import { defaultTypesMask, typesOf } from '../../queue/update-types.ts'
import type { MethodCall, ResultReply } from '../method-call.ts'

/** protocol.md §6. Has official fields only, because strictly typed clients reject others. */
export function getWebhookInfo({ queue }: MethodCall): ResultReply {
  const { webhook, allowedTypes = defaultTypesMask } = queue.settings
  const info = queue.webhook.info()
  return {
    result: JSON.stringify({
      url: webhook?.url ?? '',
      has_custom_certificate: webhook?.certificate !== undefined,
      pending_update_count: queue.updates.pendingCount,
      ip_address: webhook === undefined ? undefined : (webhook.ipAddress ?? info.ipAddress),
      last_error_date: info.lastErrorDateS,
      last_error_message: info.lastErrorMessage,
      max_connections: info.maxConnections,
      allowed_updates: allowedTypes === defaultTypesMask ? undefined : typesOf(allowedTypes),
    }),
  }
}
