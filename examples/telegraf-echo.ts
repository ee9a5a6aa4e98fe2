/**
 * An echo bot built with telegraf. `apiRoot` is the only setting that points telegraf at Postbote.
 *
 *     ./scripts/example telegraf-echo [token]
 *
 * telegraf handles the updates of one response concurrently, so their echoes may overtake each other. Ctrl-C stops the
 * bot cleanly: telegraf confirms the updates it has handled, so the next start does not receive them again.
 */
import { Telegraf } from 'telegraf'
import { message } from 'telegraf/filters'

const { BOT_TOKEN = '', API_ROOT = 'http://127.0.0.1:8081' } = process.env

const bot = new Telegraf(BOT_TOKEN, { telegram: { apiRoot: API_ROOT } })

bot.on(message('text'), (context) => context.reply(context.message.text))

// Without this handler, telegraf ends at the first echo that fails.
bot.catch((error) => {
  console.error(
    `${String(error)}\nThe server needs an upstream server that receives what bots send: see examples/README.md.`,
  )
})

for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => bot.stop(signal))

await bot.launch(() =>
  console.log(`@${bot.botInfo?.username} echoes messages; Ctrl-C stops the bot`),
)
