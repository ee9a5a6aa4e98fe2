/**
 * The polling bots of a soak run. Each confirms its updates with its next call, and now and then starts again from the
 * oldest update, like a bot that was restarted. A dropping bot also asks to drop its pending updates.
 */
import { nowMs } from './ledger.ts'
import { nameOf, type NamedUpdate } from './named-update.ts'
import { HttpCaller, pause, type SoakBot, SoakProcess } from './soak-process.ts'

const soak = new SoakProcess()
const { task, ledger } = soak

interface PolledUpdate extends NamedUpdate {
  readonly update_id: number
}

async function poll(bot: SoakBot): Promise<void> {
  const { botId, token } = bot
  const luck = soak.luck(`poller ${botId}`)
  const caller = new HttpCaller()
  let offset = 0
  while (!soak.isStopping) {
    if (luck.chance(0.02)) offset = 0
    if (bot.isDropping && luck.chance(0.02)) await drop(bot, caller)
    const parameters = { offset, limit: luck.pick([1, 10, 100]), timeout: luck.int(0, 3) }
    try {
      const url = `${task.botUrl}/bot${token}/getUpdates`
      const { status, body } = await caller.post(url, parameters)
      if (status !== 200) throw new Error(`${status}`)
      if (offset > 0) ledger.add({ kind: 'confirmed', bot: botId, offset, atMs: nowMs() })
      const updates: readonly PolledUpdate[] = body.result
      for (const update of updates) {
        ledger.add({
          kind: 'received',
          bot: botId,
          id: update.update_id,
          ...nameOf(update),
          via: 'poll',
          isTaken: true,
          atMs: nowMs(),
        })
        offset = update.update_id + 1
      }
    } catch {
      await pause(50)
    }
  }
}

/** The request may have been carried out with or without a response; one that is under way may even be carried out later. */
async function drop({ botId, token }: SoakBot, caller: HttpCaller): Promise<void> {
  const fromMs = nowMs()
  const url = `${task.botUrl}/bot${token}/deleteWebhook`
  const isDone = await caller.post(url, { drop_pending_updates: true }).then(
    ({ status }) => status === 200,
    () => false,
  )
  const toMs = nowMs() + (isDone ? 0 : 5_000)
  ledger.add({ kind: 'dropped', bot: botId, fromMs, toMs })
}

await soak.run(task.pollingBots.map((bot) => poll(bot)))
