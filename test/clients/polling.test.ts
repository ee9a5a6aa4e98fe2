/** Each framework polls, unmodified but for the address of the server; all at once, each its own bot. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startBot } from '../support/framework-bot.ts'
import { type RegisteredBot, type Server, startServer } from '../support/server.ts'
import { frameworks } from './frameworks.ts'

test('frameworks', { concurrency: true }, async (t) => {
  const server = await startServer(t)
  await Promise.all(
    frameworks.map((framework) =>
      t.test(
        `${framework.name} receives in order, and after a stop and a start what is pending, no more and no less`,
        { skip: framework.version === undefined ? framework.missing : false },
        async (each) => {
          const registered = await server.register()
          const task = { apiRoot: server.botUrl, token: registered.token, mode: 'polling' } as const
          const first = await startBot(each, framework, task)
          await pushTexts(server, registered, ['one', 'two', 'three'])
          await first.receive(3)
          await first.stop()
          assert.deepEqual(first.texts, ['one', 'two', 'three'])

          const pending = await pendingOf(server, registered)
          if (framework.confirmsAtStop) assert.equal(pending, 0)
          await pushTexts(server, registered, ['four', 'five', 'six'])
          const expected = ['one', 'two', 'three', 'four', 'five', 'six'].slice(3 - pending)
          const second = await startBot(each, framework, task)
          await second.receive(expected.length)
          await second.stop()
          assert.deepEqual(second.texts, expected)
        },
      ),
    ),
  )
})

async function pushTexts(
  server: Server,
  { botId }: RegisteredBot,
  texts: readonly string[],
): Promise<void> {
  const chat = { id: 42, type: 'private', first_name: 'Ada' }
  const from = { id: 42, is_bot: false, first_name: 'Ada' }
  for (const text of texts) {
    await server.push(botId, { message: { message_id: 1, date: 1_700_000_000, chat, from, text } })
  }
}

async function pendingOf(server: Server, { botId }: RegisteredBot): Promise<number> {
  const { body } = await server.admin('GET', `/v1/bots/${botId}`)
  return body.pending
}
