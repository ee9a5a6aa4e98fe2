/**
 * An echo bot with telegraf. All that telegraf needs to know of Postbote is `apiRoot`.
 *
 *     ./scripts/example telegraf-echo [token]
 *
 * telegraf handles the updates of one answer at the same time: their echoes may overtake each other.
 * Ctrl-C ends it in order: what it has handled is confirmed, so that the next start is not given it again.
 */
import { Telegraf } from 'telegraf'
import { message } from 'telegraf/filters'

const { BOT_TOKEN = '', API_ROOT = 'http://127.0.0.1:8081' } = process.env

const bot = new Telegraf(BOT_TOKEN, { telegram: { apiRoot: API_ROOT } })

bot.on(message('text'), (context) => context.reply(context.message.text))

// Without this telegraf ends at the first echo that fails.
bot.catch((error) => {
  console.error(`${String(error)}\nWho takes what bots send? Start it as examples/README.md says.`)
})

for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => bot.stop(signal))

await bot.launch(() => console.log(`@${bot.botInfo?.username} echoes; Ctrl-C ends it`))
