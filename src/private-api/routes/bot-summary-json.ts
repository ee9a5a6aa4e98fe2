import type { BotSummary } from '../../bots/bot-service.ts'
import type { botOperations } from '../../operations/bot-operations.ts'
import type { ResultOf } from '../../operations/operation.ts'

/** The names of a bot, as every response shows them. */
export type BotNames = Pick<
  ResultOf<typeof botOperations.getBot>,
  'bot_id' | 'first_name' | 'username' | 'created_at'
>

/** Returns the names of a bot. */
export function botSummaryJson(bot: BotSummary): BotNames {
  return {
    bot_id: bot.botId,
    first_name: bot.firstName,
    username: bot.username,
    created_at: Math.floor(bot.createdAtMs / 1000),
  }
}
