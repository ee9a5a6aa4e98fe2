/** The methods of a fake origin besides getUpdates: each returns its result. */
import type { Params } from '../../../src/bot-api/params.ts'
import type { OriginBot } from './origin-bot.ts'
import { chatMessage } from './origin-calls.ts'

export interface MethodCall {
  readonly botId: number
  readonly bot: OriginBot
  readonly params: Params
  /** For a message that the call sends. */
  readonly messageId: () => number
}

/** What a file of the origin contains. */
export const originFile = 'the bytes of a file of the origin'

const accepted = (): true => true

/** By the name in lower case. */
export const originMethods: ReadonlyMap<string, (call: MethodCall) => unknown> = new Map(
  Object.entries({
    getme: ({ botId }: MethodCall) => ({
      id: botId,
      is_bot: true,
      first_name: 'Origin',
      username: `origin_${botId}_bot`,
    }),
    setwebhook({ bot, params }: MethodCall) {
      bot.setWebhook(params.text('url') ?? '', params.boolean('drop_pending_updates'))
      return true
    },
    deletewebhook({ bot, params }: MethodCall) {
      bot.setWebhook('', params.boolean('drop_pending_updates'))
      return true
    },
    getwebhookinfo: ({ bot }: MethodCall) => ({
      url: bot.webhook,
      has_custom_certificate: false,
      pending_update_count: bot.queue.pending,
    }),
    sendmessage({ bot, params, messageId }: MethodCall) {
      const [chat, text] = [Number(params.text('chat_id')), params.text('text') ?? '']
      bot.sent.push({ chat_id: chat, text })
      return chatMessage(chat, text, messageId()).message
    },
    getfile({ params }: MethodCall) {
      const fileId = params.text('file_id') ?? ''
      const size = originFile.length
      return {
        file_id: fileId,
        file_unique_id: 'u',
        file_size: size,
        file_path: `documents/${fileId}`,
      }
    },
    logout: accepted,
    close: accepted,
  }),
)
