/** What an operator does to the deliveries of a queue, wherever the page offers it. */
import { type BotQueueName, ofQueue } from './bot-queue-name.ts'
import { errorText } from '../elements/messages.ts'
import { formatCount } from '../elements/format.ts'
import type { PageContext } from '../frame/page-context.ts'

/** A retry may be of one ordering key. */
export type QueueAction =
  | 'pauseBot'
  | 'resumeBot'
  | 'retryBot'
  | { readonly retryBot: string | undefined }

/** Acts, and says so; a pause and its end can be taken back. */
export async function actOnQueue(
  { api, toast }: PageContext,
  queue: BotQueueName,
  action: QueueAction,
): Promise<void> {
  const input = ofQueue(queue, {})
  try {
    if (typeof action === 'object' || action === 'retryBot') {
      const key = typeof action === 'object' ? action.retryBot : undefined
      const retried = await api.call('retryBot', ofQueue(queue, { ordering_key: key }))
      const { retried_keys: keys } = retried
      toast(`${formatCount(keys)} ${keys === 1 ? 'key is' : 'keys are'} tried now.`)
      return
    }
    const [text, opposite] =
      action === 'pauseBot'
        ? (['Deliveries are paused.', 'resumeBot'] as const)
        : (['Deliveries go on.', 'pauseBot'] as const)
    await api.call(action, input)
    toast(text, () => api.call(opposite, input))
  } catch (error) {
    toast(errorText(error))
  }
}
