/** Messages as a platform pushes them, distinguished by their text. */
import type { RegisteredBot, Server } from '../server/server.ts'

export async function pushTexts(
  server: Server,
  { botId }: RegisteredBot,
  texts: readonly string[],
  query = '',
): Promise<void> {
  for (const text of texts) await server.push(botId, { message: messageOf(text) }, query)
}

export function messageOf(text: string): object {
  const chat = { id: 42, type: 'private', first_name: 'Ada' }
  const from = { id: 42, is_bot: false, first_name: 'Ada' }
  return { message_id: 1, date: 1_700_000_000, chat, from, text }
}

/** Number of updates that the bot has not confirmed. */
export async function pendingOf(server: Server, { botId }: RegisteredBot): Promise<number> {
  const { body } = await server.admin('GET', `/v1/bots/${botId}`)
  return body.pending
}
