/**
 * A bot that polls as frameworks do: the offset of the next call confirms the last response. When a call fails, the bot
 * forgets its offset, as after a restart, so that everything that is not durably confirmed comes again.
 */
import { Agent, request } from 'node:http'
import type { Server } from '../server/server.ts'
import type { ReceivedUpdate } from '../webhook/webhook-sink.ts'

export interface PolledUpdate {
  readonly update: ReceivedUpdate
  readonly atMs: number
}

export interface PollingBotOptions {
  readonly token: string
  /** The server that currently runs. */
  server(): Pick<Server, 'botUrl'>
  readonly timeoutS?: number
}

const retryMs = 100

export class PollingBot {
  readonly received: PolledUpdate[] = []
  /** Updates that came again although a call that confirmed them had its response, with the time of that response. */
  readonly repeated: { readonly updateId: number; readonly confirmedAtMs: number }[] = []
  readonly failures: string[] = []
  readonly #options: PollingBotOptions
  readonly #confirmedAtMs = new Map<number, number>()
  #toConfirm: readonly number[] = []
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 })
  readonly #run: Promise<void>
  readonly #abort = new AbortController()

  constructor(options: PollingBotOptions) {
    this.#options = options
    this.#run = this.#poll()
  }

  async stop(): Promise<void> {
    this.#abort.abort()
    await this.#run
    this.#agent.destroy()
  }

  async #poll(): Promise<void> {
    let offset = 0
    while (!this.#abort.signal.aborted) {
      try {
        offset = await this.#call(offset)
      } catch (error) {
        if (this.#abort.signal.aborted) return
        this.#toConfirm = []
        this.failures.push(error instanceof Error ? error.message : String(error))
        offset = 0
        await new Promise((resolve) => setTimeout(resolve, retryMs))
      }
    }
  }

  async #call(offset: number): Promise<number> {
    const text = await this.#post(JSON.stringify({ offset, timeout: this.#options.timeoutS ?? 5 }))
    const answer = JSON.parse(text)
    if (answer.ok !== true) throw new Error(text)
    const atMs = Date.now()
    for (const updateId of this.#toConfirm) this.#confirmedAtMs.set(updateId, atMs)
    for (const update of answer.result) this.#receive(update, atMs)
    this.#toConfirm = answer.result.map((update: ReceivedUpdate) => update.update_id)
    const last = this.#toConfirm.at(-1)
    return last === undefined ? offset : last + 1
  }

  #receive(update: ReceivedUpdate, atMs: number): void {
    const confirmedAtMs = this.#confirmedAtMs.get(update.update_id)
    if (confirmedAtMs !== undefined) {
      this.repeated.push({ updateId: update.update_id, confirmedAtMs })
    }
    this.received.push({ update, atMs })
  }

  #post(body: string): Promise<string> {
    const options = this.#options
    return new Promise((resolve, reject) => {
      const sent = request(`${options.server().botUrl}/bot${options.token}/getUpdates`, {
        method: 'POST',
        agent: this.#agent,
        headers: { 'content-type': 'application/json' },
        signal: this.#abort.signal,
      })
      sent.once('error', reject)
      sent.once('response', (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.once('error', reject)
        response.once('end', () => resolve(Buffer.concat(chunks).toString()))
      })
      sent.end(body)
    })
  }
}
