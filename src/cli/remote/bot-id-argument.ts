import { wholeNumber } from '../../config/config-values.ts'
import { botIdMax, botIdMin } from '../../limits.ts'

const botId = wholeNumber(botIdMin, botIdMax)

export const botIdArgument = {
  name: '<bot_id>',
  kind: botId,
  sentence: 'Id of the bot, the number before the colon of its token.',
} as const

export const newBotIdArgument = {
  name: '[bot_id]',
  kind: botId,
  sentence: 'Id of the bot. Without it, the server chooses a free one.',
} as const
