/** The form that makes a key of the private API. */
import type { ApiClient } from './api-client.ts'
import type { BrowserClock } from './browser-clock.ts'
import { element, setElementText } from './element.ts'
import { errorText } from './error-text.ts'
import { formElement } from './form-element.ts'
import type { IssuedKeyShape } from './shapes.ts'

const scopes = [
  ['push', 'push: push updates'],
  ['read', 'read: read bots, updates and metrics'],
  ['manage', 'manage: change bots and their settings'],
  ['all', 'all: all of this, keys and backups'],
] as const

export interface KeyFormOptions {
  readonly api: ApiClient
  readonly clock: BrowserClock
  readonly onIssued: (key: IssuedKeyShape) => void
}

export class KeyForm {
  readonly root: HTMLElement
  readonly #options: KeyFormOptions
  readonly #name = element('input', { required: true, maxlength: 64, autocomplete: 'off' })
  readonly #scopes = scopes.map(([scope, text]) => {
    const box = element('input', { type: 'checkbox', value: scope })
    return { scope, box, label: element('label', { class: 'check' }, box, text) }
  })
  readonly #bots = element('input', {
    placeholder: 'all bots',
    autocomplete: 'off',
  })
  readonly #updates = numberField('no limit')
  readonly #requests = numberField('no limit')
  readonly #days = numberField('never')
  readonly #result = element('p', { role: 'alert', class: 'error note' })

  constructor(options: KeyFormOptions) {
    this.#options = options
    this.root = element(
      'section',
      { class: 'card' },
      element('h2', {}, 'Create a key'),
      formElement(
        () => void this.#create(),
        element(
          'div',
          { class: 'controls' },
          element('label', {}, 'Name', this.#name),
          element('label', {}, 'Ids of its bots, with commas', this.#bots),
          element('label', {}, 'Updates per second, at most', this.#updates),
          element('label', {}, 'Requests per second, at most', this.#requests),
          element('label', {}, 'Expires after days', this.#days),
        ),
        element(
          'fieldset',
          {},
          element('legend', {}, 'Scopes'),
          ...this.#scopes.map(({ label }) => label),
        ),
        element('p', {}, element('button', { type: 'submit' }, 'Create')),
        this.#result,
      ),
    )
  }

  async #create(): Promise<void> {
    const { api, onIssued } = this.#options
    setElementText(this.#result, '')
    try {
      const issued = await api.call('createKey', {}, JSON.stringify(this.#wanted()))
      for (const field of [this.#name, this.#bots, this.#updates, this.#requests, this.#days]) {
        field.value = ''
      }
      for (const { box } of this.#scopes) box.checked = false
      onIssued(issued)
    } catch (error) {
      setElementText(this.#result, errorText(error))
    }
  }

  /** What is not given is left out. The server reads the texts of numbers, and says what is wrong with others. */
  #wanted(): object {
    const bots = this.#bots.value.split(/[, ]+/).filter((id) => id !== '')
    const days = this.#days.value
    const nowS = Math.floor(this.#options.clock.nowMs() / 1_000)
    return {
      name: this.#name.value,
      scopes: this.#scopes.flatMap(({ scope, box }) => (box.checked ? [scope] : [])),
      bots: bots.length === 0 ? undefined : bots,
      updates_per_second: this.#updates.value || undefined,
      requests_per_second: this.#requests.value || undefined,
      expires: /^\d+$/.test(days) ? nowS + Number(days) * 86_400 : days || undefined,
    }
  }
}

function numberField(placeholder: string): HTMLInputElement {
  return element('input', { inputmode: 'numeric', placeholder, autocomplete: 'off' })
}
