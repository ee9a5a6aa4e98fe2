/** What is wrong with a queue of a bot, in the sentence that commands show first. Pure. */
import type { ResultOf } from '../../api/operation.ts'
import type { botOperations } from './bot-operations.ts'

type BotState = ResultOf<typeof botOperations.getBot>

/** @param isTest - about the /test/ queue of the bot */
export function healthSentence(bot: BotState, isTest = false): string {
  const { paused, health, health_reason: reason } = isTest ? bot.test : bot
  const who = `bot ${bot.bot_id} @${bot.username}${isTest ? ' /test/' : ''}`
  const word = paused ? 'paused' : health
  const state = word === null ? 'polls' : `is ${word}`
  if (reason === null) return `${who} ${state}`
  return word !== null && reason.startsWith(word)
    ? `${who} is ${reason}`
    : `${who} ${state}: ${reason}`
}
