/** One queue of one bot: what a page about a bot is about. */
export interface BotQueueName {
  readonly botId: string
  readonly isTest: boolean
}

/**
 * Returns the input of a call about a queue.
 *
 * @param queue - the bot and which of its queues
 * @param query - further parameters
 */
export function ofQueue<Query extends object>(
  { botId, isTest }: BotQueueName,
  query: Query,
): { readonly id: string; readonly query: Query & { readonly test: boolean } } {
  return { id: botId, query: { ...query, test: isTest } }
}
