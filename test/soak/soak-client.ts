/** The calls of a soak run itself to its server: before the run begins, and when it is over. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Answer, send } from '../support/server/server.ts'
import { type Ledger, nowMs } from './ledger.ts'
import { nameOf, type NamedUpdate } from './named-update.ts'
import type { ServerLives } from './server-lives.ts'
import { pause, type SoakBot, type SoakTask } from './soak-process.ts'

export class SoakClient {
  readonly key: string
  readonly #lives: ServerLives
  readonly #ledger: Ledger

  constructor(lives: ServerLives, ledger: Ledger) {
    this.#lives = lives
    this.#ledger = ledger
    this.key = readFileSync(join(lives.dir, 'admin.key'), 'utf8').trim()
  }

  async register(botId: number, isDropping: boolean): Promise<SoakBot> {
    const names = { bot_id: botId, first_name: 'Soak', username: 'soak_bot' }
    const { token } = await this.#admin('POST', '/v1/bots', names)
    return { botId, token, isDropping }
  }

  async setWebhooks({ webhookBots, receiverPort }: SoakTask): Promise<void> {
    for (const bot of webhookBots) {
      const url = `http://127.0.0.1:${receiverPort}/${bot.botId}`
      await this.#bot(bot, 'setWebhook', { url, max_connections: 10 })
    }
  }

  /** Waits until nothing is pending; returns how many updates still are when the time is over. */
  async drained({ pollingBots, webhookBots }: SoakTask, limitMs: number): Promise<number> {
    const endMs = nowMs() + limitMs
    for (;;) {
      let pending = 0
      for (const { botId } of [...pollingBots, ...webhookBots]) {
        const bot = await this.#admin('GET', `/v1/bots/${botId}`)
        pending += bot.pending
      }
      if (pending === 0 || nowMs() > endMs) return pending
      await pause(200)
    }
  }

  /** Records the dead letters of each bot, and all updates that are still pending. */
  async noteLeft({ pollingBots, webhookBots }: SoakTask): Promise<void> {
    for (const bot of webhookBots) {
      await this.#noteLetters(bot)
      await this.#bot(bot, 'deleteWebhook', {})
    }
    for (const bot of [...pollingBots, ...webhookBots]) await this.#notePending(bot)
  }

  async #noteLetters({ botId: bot }: SoakBot): Promise<void> {
    for (let after = 0; ; ) {
      const path = `/v1/bots/${bot}/dead-letters`
      const { dead_letters: deadLetters } = await this.#admin(
        'GET',
        `${path}?after=${after}&limit=100`,
      )
      if (deadLetters.length === 0) return
      for (const { update_id: id, reason } of deadLetters) {
        const { update } = await this.#admin('GET', `${path}/${id}`)
        this.#ledger.add({ kind: 'letter', bot, id, name: nameOf(update).name, reason })
        after = id
      }
    }
  }

  async #notePending(bot: SoakBot): Promise<void> {
    for (let offset = 0; ; ) {
      const updates: readonly (NamedUpdate & { readonly update_id: number })[] = await this.#bot(
        bot,
        'getUpdates',
        { offset, timeout: 0 },
      )
      if (updates.length === 0) return
      for (const update of updates) {
        const { update_id: id } = update
        offset = id + 1
        this.#ledger.add({
          kind: 'received',
          bot: bot.botId,
          id,
          ...nameOf(update),
          via: 'left',
          isTaken: true,
          atMs: nowMs(),
        })
      }
    }
  }

  // oxlint-disable-next-line typescript/no-explicit-any -- callers check the shape by using it
  async #admin(method: string, path: string, body?: object): Promise<any> {
    const { privateUrl } = this.#lives
    return bodyOf(
      await send({
        method,
        url: privateUrl + path,
        headers: { authorization: `Bearer ${this.key}` },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      }),
    )
  }

  // oxlint-disable-next-line typescript/no-explicit-any -- callers check the shape by using it
  async #bot({ token }: SoakBot, method: string, parameters: object): Promise<any> {
    const answer = await send({
      method: 'POST',
      url: `${this.#lives.botUrl}/bot${token}/${method}`,
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(parameters),
    })
    return bodyOf(answer).result
  }
}

// oxlint-disable-next-line typescript/no-explicit-any -- callers check the shape by using it
function bodyOf({ status, text, body }: Answer): any {
  assert.equal(status, 200, text)
  return body
}
