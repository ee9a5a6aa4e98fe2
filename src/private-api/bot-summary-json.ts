import type { BotSummary } from '../bots/bot-service.ts'

/** The names of a bot, as every response shows them. */
export function botSummaryJson(bot: BotSummary): object {
  return {
    bot_id: bot.botId,
    first_name: bot.firstName,
    username: bot.username,
    created_at: Math.floor(bot.createdAtMs / 1000),
  }
}
