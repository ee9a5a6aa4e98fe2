/** Shows and sets the limit of deliveries per second that an operator gives to a queue. */
import { type BotQueueName, ofQueue } from './bot-queue-name.ts'
import { element, setElementText } from './element.ts'
import { errorText } from './error-text.ts'
import { formElement } from './form-element.ts'
import type { PageContext } from './page-context.ts'

export interface LimitPanelOptions extends Pick<PageContext, 'api' | 'may'> {
  readonly queue: BotQueueName
}

export class LimitPanel {
  readonly root: HTMLElement
  readonly #options: LimitPanelOptions
  readonly #limit = element('input', {
    inputmode: 'decimal',
    autocomplete: 'off',
    placeholder: 'no limit',
    oninput: () => {
      this.#isEdited = true
    },
  })
  readonly #result = element('p', { role: 'status', class: 'note' })
  /** The reader has typed a limit that is not set. */
  #isEdited = false

  constructor(options: LimitPanelOptions) {
    this.#options = options
    this.root = formElement(
      () => void this.#set(),
      element(
        'div',
        { class: 'controls' },
        element('label', {}, 'Deliveries per second, at most', this.#limit),
        element('button', { type: 'submit', hidden: !options.may('manage') }, 'Set limit'),
      ),
      this.#result,
    )
    this.#limit.readOnly = !options.may('manage')
  }

  /** Reads the limit, unless the reader is changing it. */
  async refresh(): Promise<void> {
    const { api, queue } = this.#options
    const limits = await api.call('getLimits', ofQueue(queue, {}))
    if (!this.#isEdited) this.#limit.value = `${limits.deliveries_per_second ?? ''}`
  }

  async #set(): Promise<void> {
    const { api, queue } = this.#options
    const { value } = this.#limit
    // The server says what is wrong with a text that is no number.
    const limit = value === '' ? null : Number.isNaN(Number(value)) ? value : Number(value)
    try {
      const body = JSON.stringify({ deliveries_per_second: limit })
      await api.call('setLimits', ofQueue(queue, {}), body)
      this.#isEdited = false
      this.#say(limit === null ? 'There is no limit now.' : `The limit is ${limit} per second now.`)
    } catch (error) {
      this.#say(errorText(error))
    }
  }

  #say(text: string): void {
    setElementText(this.#result, text)
  }
}
