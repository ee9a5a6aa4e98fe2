/** The keys of the private API: listed, made, rotated and revoked. A key is shown once, until the reader leaves the page. */
import { isTrouble } from './api-client.ts'
import { element, setElementText } from './element.ts'
import { errorText } from './error-text.ts'
import { formatCount, formatDate } from './format.ts'
import { KeyForm } from './key-form.ts'
import type { PageContext, PageView } from './page-context.ts'
import type { IssuedKeyShape, KeyChangeShape, KeyShape } from './shapes.ts'
import { VisiblePoller } from './visible-poller.ts'

/** For the last use of each key. */
const pauseMs = 5_000

export interface KeysViewOptions extends PageContext {
  /** Asks the reader whether to go on. */
  confirm(question: string): boolean
}

export class KeysView implements PageView {
  readonly title = 'Keys'
  readonly root: HTMLElement
  readonly #options: KeysViewOptions
  readonly #result = element('p', { role: 'status', class: 'note' })
  readonly #issued = element('input', { readonly: true, size: 66, spellcheck: 'false' })
  readonly #copy = element(
    'button',
    { type: 'button', onclick: () => void this.#copyKey() },
    'Copy',
  )
  readonly #issuedField = element(
    'div',
    { hidden: true, class: 'note controls' },
    element('label', {}, 'The key, which is shown only now', this.#issued),
    this.#copy,
  )
  readonly #overlap = element(
    'select',
    {},
    element('option', { value: 0 }, 'not at all'),
    element('option', { value: 3_600 }, 'for an hour'),
    element('option', { value: 86_400 }, 'for a day'),
    element('option', { value: 604_800 }, 'for a week'),
  )
  readonly #body = element('tbody')
  readonly #list: HTMLElement
  readonly #poller: VisiblePoller
  #shown = ''

  constructor(options: KeysViewOptions) {
    this.#options = options
    this.#list = this.#table()
    const form = new KeyForm({ ...options, onIssued: (key) => void this.#changed(key) })
    this.root = element(
      'div',
      {},
      element('p', {}, element('a', { href: '#/' }, 'All bots')),
      element('h1', {}, 'Keys'),
      element(
        'section',
        { class: 'card' },
        element('h2', {}, 'Keys of this server'),
        element(
          'p',
          { class: 'faint' },
          'The admin key is not listed. It may do everything, and it can revoke all keys.',
        ),
        this.#result,
        this.#issuedField,
        this.#list,
      ),
      form.root,
    )
    this.#poller = new VisiblePoller({ ...options, pauseMs, work: () => this.#refresh() })
  }

  close(): void {
    this.#poller.close()
    this.#show(undefined)
  }

  #table(): HTMLElement {
    const titles = ['Name', 'Scopes', 'Bots', 'Limits', 'Expires', 'Last used', 'Id', 'Actions']
    const heads = titles.map((title) => element('th', { scope: 'col' }, title))
    return element(
      'div',
      { hidden: true },
      element(
        'div',
        { class: 'controls' },
        element('label', {}, 'After a rotation, the old secret stays valid', this.#overlap),
      ),
      element(
        'div',
        { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Keys' },
        element('table', {}, element('thead', {}, element('tr', {}, ...heads)), this.#body),
      ),
    )
  }

  async #refresh(): Promise<void> {
    try {
      const { keys } = await this.#options.api.call('listKeys', {})
      this.#list.hidden = keys.length === 0
      // A row that is made anew would lose the focus.
      const shown = JSON.stringify(keys)
      if (shown === this.#shown) return
      this.#shown = shown
      this.#body.replaceChildren(...keys.map((key) => this.#rowOf(key)))
    } catch (error) {
      if (!isTrouble(error)) this.#fail(error)
    }
  }

  #rowOf(key: KeyShape): HTMLElement {
    const button = (text: string, act: () => void): HTMLElement =>
      element('button', { type: 'button', onclick: act, 'aria-label': `${text} ${key.name}` }, text)
    return element(
      'tr',
      {},
      element('th', { scope: 'row', class: 'wrap' }, key.name),
      element('td', {}, key.scopes.join(', ')),
      element('td', { class: 'wrap' }, key.bots === null ? 'all' : key.bots.join(', ')),
      element('td', {}, limitsText(key)),
      element('td', {}, key.expires === null ? 'never' : formatDate(key.expires)),
      element('td', {}, key.last_used === null ? 'never' : formatDate(key.last_used)),
      element('td', {}, key.key_id),
      element(
        'td',
        { class: 'actions' },
        button('Rotate', () => void this.#rotate(key)),
        button('Revoke', () => void this.#revoke(key)),
      ),
    )
  }

  async #rotate(key: KeyShape): Promise<void> {
    const overlap = Number(this.#overlap.value)
    const end = overlap === 0 ? ' The old secret ends at once.' : ''
    if (!this.#options.confirm(`Give the key ${key.name} a new secret?${end}`)) return
    try {
      const input = { key_id: key.key_id, body: { overlap } }
      await this.#changed(await this.#options.api.call('rotateKey', input))
    } catch (error) {
      this.#fail(error)
    }
  }

  async #revoke(key: KeyShape): Promise<void> {
    const question = `Revoke the key ${key.name}? It and all keys that it has made end, with their streams and sessions, and cannot be restored.`
    if (!this.#options.confirm(question)) return
    try {
      const change = await this.#options.api.call('revokeKey', { key_id: key.key_id })
      this.#show(undefined)
      this.#say(`The key ${key.name} is revoked.`, change)
    } catch (error) {
      this.#fail(error)
    }
    await this.#refresh()
  }

  async #changed(issued: IssuedKeyShape): Promise<void> {
    this.#say(`Copy the key ${issued.name} now: it cannot be shown again.`, issued)
    this.#show(issued.key)
    this.#issued.focus()
    this.#issued.select()
    await this.#refresh()
  }

  /** Without TLS, a page of another machine has no clipboard, but the old way still works there. */
  async #copyKey(): Promise<void> {
    const { value } = this.#issued
    this.#issued.select()
    const isCopied = await navigator.clipboard
      ?.writeText(value)
      .then(() => true)
      .catch(() => document.execCommand('copy'))
    const done = isCopied ?? document.execCommand('copy')
    setElementText(this.#copy, done ? 'Copied' : 'Copy it with the keyboard')
  }

  #say(text: string, { unreached_workers: unreached = 0 }: KeyChangeShape): void {
    const delay = `${unreached} workers did not respond and take the change within seconds after they do.`
    setElementText(this.#result, unreached > 0 ? `${text} ${delay}` : text)
  }

  /** As a property, because an attribute would be in the source of the page. */
  #show(key: string | undefined): void {
    this.#issued.value = key ?? ''
    this.#issuedField.hidden = key === undefined
    setElementText(this.#copy, 'Copy')
  }

  #fail(error: unknown): void {
    setElementText(this.#result, errorText(error))
  }
}

function limitsText(key: KeyShape): string {
  const limits = [
    key.updates_per_second === null ? [] : [`${formatCount(key.updates_per_second)} updates/s`],
    key.requests_per_second === null ? [] : [`${formatCount(key.requests_per_second)} requests/s`],
  ].flat()
  return limits.length === 0 ? 'none' : limits.join(', ')
}
