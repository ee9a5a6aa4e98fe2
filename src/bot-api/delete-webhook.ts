import { paramsNote } from './params-note.ts'
import type { MethodCall, ResultReply } from './method-call.ts'

/** protocol.md §6. allowed_updates keep their value. */
export async function deleteWebhook({ params, queue }: MethodCall): Promise<ResultReply> {
  const dropsPending = params.boolean('drop_pending_updates')
  queue.note('deleteWebhook', paramsNote('deleteWebhook', params, ['drop_pending_updates']))
  const description = await queue.webhook.delete(dropsPending)
  return { result: 'true', description }
}
