/**
 * An echo bot built with grammY. `apiRoot` is the only setting that points grammY at Postbote.
 *
 *     ./scripts/example grammy-echo [token]
 *
 * Ctrl-C stops the bot cleanly: grammY confirms the updates it has handled, so the next start does not receive them again.
 */
import { Bot } from 'grammy'

const { BOT_TOKEN = '', API_ROOT = 'http://127.0.0.1:8081' } = process.env

const bot = new Bot(BOT_TOKEN, { client: { apiRoot: API_ROOT } })

bot.on('message:text', (context) => context.reply(context.message.text))

// Without this handler, grammY stops at the first echo that fails.
bot.catch(({ error }) => {
  console.error(
    `${String(error)}\nThe server needs an upstream server that receives what bots send: see examples/README.md.`,
  )
})

for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => void bot.stop())

await bot.start({
  onStart: ({ username }) => console.log(`@${username} echoes messages; Ctrl-C stops the bot`),
})
