/**
 * An echo bot with grammY. All that grammY needs to know of Postbote is `apiRoot`.
 *
 *     ./scripts/example grammy-echo [token]
 *
 * Ctrl-C ends it in order: what it has handled is confirmed, so that the next start is not given it again.
 */
import { Bot } from 'grammy'

const { BOT_TOKEN = '', API_ROOT = 'http://127.0.0.1:8081' } = process.env

const bot = new Bot(BOT_TOKEN, { client: { apiRoot: API_ROOT } })

bot.on('message:text', (context) => context.reply(context.message.text))

// Without this grammY stops at the first echo that fails.
bot.catch(({ error }) => {
  console.error(`${String(error)}\nWho takes what bots send? Start it as examples/README.md says.`)
})

for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => void bot.stop())

await bot.start({ onStart: ({ username }) => console.log(`@${username} echoes; Ctrl-C ends it`) })
