/**
 * The methods that `--demo` adds, so that the first bot of a newcomer replies: nothing is sent anywhere. A message is
 * returned as it would have been sent, and logged.
 */
import { PostboteError } from '../kit/errors.ts'
import type { Log } from '../kit/surroundings.ts'
import type { Method, MethodCall, ResultReply } from './method-call.ts'

/** Methods that return a message, and the log's word for each. */
const messages = { sendMessage: 'sent', editMessageText: 'edited' } as const
const others = [
  'sendChatAction',
  'answerCallbackQuery',
  'deleteMessage',
  'setMessageReaction',
  'setMyCommands',
  'deleteMyCommands',
]

/** Returns the methods by their names in lower case. */
export function demoMethods(log: Pick<Log, 'info'>): ReadonlyMap<string, Method> {
  let lastMessageId = 0
  const messageOf = (call: MethodCall): ResultReply => {
    lastMessageId += 1
    return { result: JSON.stringify(message(call, lastMessageId)) }
  }
  const sends = Object.entries(messages).map(([name, word]): [string, Method] => [
    name.toLowerCase(),
    (call) => {
      const reply = messageOf(call)
      log.info({ ...logged(call), text: call.params.text('text') }, `demo: a message was ${word}`)
      return reply
    },
  ])
  const acts = others.map((name): [string, Method] => [
    name.toLowerCase(),
    (call) => {
      log.info(logged(call), `demo: ${name}`)
      return { result: 'true' }
    },
  ])
  return new Map([...sends, ...acts])
}

function logged({ queue, params }: MethodCall): object {
  return { bot: `bot${queue.bot.botId}`, chat: params.text('chat_id') }
}

function message({ queue, params }: MethodCall, messageId: number): object {
  const [chatId, text] = [params.text('chat_id'), params.text('text')]
  if (chatId === undefined) throw new PostboteError('BAD_REQUEST', { detail: 'chat_id is empty' })
  if (text === undefined)
    throw new PostboteError('BAD_REQUEST', { detail: 'message text is empty' })
  const { botId, record } = queue.bot
  const from = { id: botId, is_bot: true, first_name: record.firstName, username: record.username }
  const edited = params.integer('message_id', { default: messageId, min: 1, max: 2 ** 52 })
  const date = Math.floor(queue.clock.nowMs() / 1_000)
  return { message_id: edited, from, chat: chatOf(chatId), date, text }
}

/** Groups have negative ids, as at Telegram. */
function chatOf(chatId: string): object {
  const id = Number(chatId)
  if (!Number.isSafeInteger(id))
    return { id: -1, type: 'channel', title: 'Demo', username: chatId.replace('@', '') }
  return id < 0
    ? { id, type: 'supergroup', title: 'Demo' }
    : { id, type: 'private', first_name: 'Demo' }
}
