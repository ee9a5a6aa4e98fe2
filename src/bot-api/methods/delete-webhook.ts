import type { MethodCall, ResultReply } from '../method-call.ts'

/** protocol.md §6. allowed_updates keep their value. */
export async function deleteWebhook({ params, queue }: MethodCall): Promise<ResultReply> {
  const description = await queue.webhook.delete(params.boolean('drop_pending_updates'))
  return { result: 'true', description }
}
