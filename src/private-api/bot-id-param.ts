/**
 * The bot id in a path, as strictly as the worker that finds the bot's owner reads it (bot-api/target.ts): `0x64` and `1e2`
 * would be numbers, too, but of a bot this worker may not own.
 */
import { PostboteError } from '../errors.ts'
import { botIdMax, botIdMin } from '../limits.ts'

/** Throws BAD_REQUEST. */
export function botIdParam(text: string): number {
  const botId = /^[1-9]\d{2,15}$/.test(text) ? Number(text) : 0
  if (botId >= botIdMin && botId <= botIdMax) return botId
  throw new PostboteError('BAD_REQUEST', {
    detail: `bot id: expected a whole number from ${botIdMin} to ${botIdMax}`,
  })
}
