/** Pushes a test update and says how far it has come: stored, then delivered by the webhook or confirmed by a poll. */
import type { ApiClient } from './api-client.ts'
import { type BotQueueName, ofQueue } from './bot-queue-name.ts'
import { durationText } from './attempts-panel.ts'
import { element, setElementText } from './element.ts'
import { errorText } from './error-text.ts'
import type { AttemptShape } from './shapes.ts'

/** A complete message of a private chat, so that no framework fails on it. */
function sampleUpdate(nowMs: number): string {
  const person = { id: 1, first_name: 'Dashboard' }
  const message = {
    message_id: 1,
    date: Math.floor(nowMs / 1_000),
    chat: { ...person, type: 'private' },
    from: { ...person, is_bot: false },
    text: 'A test update from the dashboard',
  }
  return JSON.stringify({ message }, undefined, 1)
}

export interface PushPanelOptions {
  readonly api: ApiClient
  readonly queue: BotQueueName
  readonly nowMs: number
}

export class PushPanel {
  readonly root: HTMLElement
  readonly #options: PushPanelOptions
  readonly #update: HTMLTextAreaElement
  readonly #result = element('p', { role: 'status', id: 'push-result' })
  /** The update that is on its way. */
  #watched: number | undefined

  constructor(options: PushPanelOptions) {
    this.#options = options
    this.#update = element(
      'textarea',
      { rows: 8, spellcheck: 'false' },
      sampleUpdate(options.nowMs),
    )
    const push = (): void => void this.#push()
    this.root = element(
      'section',
      { class: 'card' },
      element('h2', {}, 'Push a test update'),
      element('label', {}, 'The update, without update_id', this.#update),
      element('p', {}, element('button', { type: 'button', onclick: push }, 'Push')),
      this.#result,
    )
  }

  /** The bot has confirmed all updates below this id. */
  confirmedBelow(updateId: number): void {
    if (this.#watched === undefined || this.#watched >= updateId) return
    this.#arrived(`Update ${this.#watched} was confirmed by the bot.`)
  }

  /** The last attempts to deliver, newest first. */
  attempted(attempts: readonly AttemptShape[]): void {
    const id = this.#watched
    const attempt = attempts.find((each) => each.update_id === id)
    if (id === undefined || attempt === undefined) return
    if (attempt.error === null) {
      this.#arrived(`Update ${id} was delivered in ${durationText(attempt)}.`)
    } else setElementText(this.#result, `Update ${id} is stored. Last attempt: ${attempt.error}.`)
  }

  #arrived(text: string): void {
    this.#watched = undefined
    setElementText(this.#result, text)
  }

  async #push(): Promise<void> {
    const { api, queue } = this.#options
    this.#watched = undefined
    setElementText(this.#result, 'Pushing…')
    try {
      const input = ofQueue(queue, { validate: 'telegram' as const })
      const pushed = await api.call('pushUpdate', input, this.#update.value)
      this.#watched = 'update_id' in pushed ? pushed.update_id : undefined
      setElementText(
        this.#result,
        this.#watched === undefined
          ? 'The bot does not want updates of this type: nothing was stored.'
          : `Update ${this.#watched} is stored and waits for the bot.`,
      )
    } catch (error) {
      setElementText(this.#result, errorText(error))
    }
  }
}
