/**
 * grammY with its runner: handlers run concurrently, and the next poll is sent while they do. Polls therefore confirm
 * what is handled, and a stop does not.
 */
import { run } from '@grammyjs/runner'
import { Bot } from 'grammy'
import { runBotProgram } from './bot-program.ts'

await runBotProgram(async ({ apiRoot, token, isTest, allowedUpdates }, voice) => {
  const bot = new Bot(token, { client: { apiRoot, environment: isTest ? 'test' : 'prod' } })
  bot.on('message:text', (context) => voice.text(context.message.text))
  const asked = allowedUpdates === undefined ? {} : { allowed_updates: allowedUpdates }
  const runner = run(bot, { runner: { fetch: asked } })
  runner.task()?.catch(voice.failed)
  voice.ready()
  return () => runner.stop()
})
