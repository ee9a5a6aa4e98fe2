/** One queue of one bot: what a page about a bot is about. */
export interface BotQueueName {
  readonly botId: string
  readonly isTest: boolean
}

/**
 * Returns the path of a call about a queue.
 *
 * @param queue - the bot and which of its queues
 * @param rest - what follows the id, such as `/attempts`
 * @param query - further parameters
 */
export function botPath(
  { botId, isTest }: BotQueueName,
  rest: string,
  query: Readonly<Record<string, string>> = {},
): string {
  const all = new URLSearchParams(isTest ? { ...query, test: 'true' } : query).toString()
  return `/v1/bots/${botId}${rest}${all === '' ? '' : `?${all}`}`
}
