/**
 * Parses the bot id in a path as strictly as bot-api/target.ts, which finds the bot's owner. `0x64` and `1e2` would be
 * numbers, too, but of a bot that this worker may not own.
 */
import { botIdMax, botIdMin } from '../limits.ts'
import { refusal } from './update-options.ts'

/** Throws BAD_REQUEST for anything that is not a bot id. */
export function botIdParam(text: string): number {
  const botId = /^[1-9]\d{2,15}$/.test(text) ? Number(text) : 0
  if (botId >= botIdMin && botId <= botIdMax) return botId
  throw refusal('bot id', `a whole number from ${botIdMin} to ${botIdMax}`, text)
}
