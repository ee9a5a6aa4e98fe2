/** The dead letters of a queue: shown with their payload, pushed again, or dropped, one by one or all. */
import { type BotQueueName, ofQueue } from './bot-queue-name.ts'
import { element, setElementText } from './element.ts'
import { errorText } from './error-text.ts'
import { formatBytes, formatCount, formatTime } from './format.ts'
import type { PageCall, PageInput } from './page-calls.ts'
import type { PageContext } from './page-context.ts'
import type { DeadLetterShape } from './shapes.ts'

/** Chosen: fits on two screens; the next ones follow on request. */
const perPage = 50

export interface DeadLettersPanelOptions extends Pick<PageContext, 'api' | 'may'> {
  readonly queue: BotQueueName
  /** Asks the reader whether to go on. */
  confirm(question: string): boolean
}

export class DeadLettersPanel {
  readonly root: HTMLElement
  readonly #options: DeadLettersPanelOptions
  readonly #count = element('p', { role: 'status', class: 'faint' })
  readonly #body = element('tbody')
  readonly #payload = element('pre', { tabindex: 0, 'aria-label': 'Payload', hidden: true })
  readonly #next: HTMLButtonElement
  readonly #first: HTMLButtonElement
  /** What is of use only if there are dead letters. */
  readonly #list: HTMLElement
  /** The list begins above this id. */
  #after = 0
  #shown = ''

  constructor(options: DeadLettersPanelOptions) {
    this.#options = options
    this.#first = buttonOf('First page', () => this.#turn(0))
    this.#next = buttonOf('Next page', () => this.#turn(Number(this.#next.value)))
    const titles = ['Update', 'Type', 'Reason', 'Time', 'Attempts', 'Size', 'Last error', 'Actions']
    const heads = titles.map((title) => element('th', { scope: 'col' }, title))
    this.#list = element(
      'div',
      { hidden: true },
      element(
        'div',
        { class: 'controls' },
        ...(options.may('manage')
          ? [
              buttonOf('Replay all', () => this.#replayAll()),
              buttonOf('Drop all', () => this.#dropAll()),
            ]
          : []),
        this.#first,
        this.#next,
      ),
      element(
        'div',
        { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Dead letters' },
        element('table', {}, element('thead', {}, element('tr', {}, ...heads)), this.#body),
      ),
      this.#payload,
    )
    this.root = element(
      'section',
      { class: 'card' },
      element('h2', {}, 'Dead letters'),
      this.#count,
      this.#list,
    )
  }

  async refresh(): Promise<void> {
    const { api, queue } = this.#options
    const input = ofQueue(queue, { limit: perPage, after: this.#after })
    const { dead_letters: letters, total } = await api.call('listDeadLetters', input)
    setElementText(this.#count, countText(total))
    this.#list.hidden = total === 0
    this.#payload.hidden ||= total === 0
    this.#first.hidden = this.#after === 0
    this.#next.hidden = letters.length < perPage
    this.#next.value = `${letters.at(-1)?.update_id ?? 0}`
    // A row that is made anew would lose the focus.
    const shown = JSON.stringify(letters)
    if (shown === this.#shown) return
    this.#shown = shown
    this.#body.replaceChildren(...letters.map((letter) => this.#rowOf(letter)))
  }

  #rowOf(letter: DeadLetterShape): HTMLElement {
    const { update_id: id } = letter
    const letterInput = { ...ofQueue(this.#options.queue, {}), update_id: id }
    const button = (text: string, act: () => void): HTMLElement =>
      element('button', { type: 'button', onclick: act, 'aria-label': `${text} ${id}` }, text)
    const cells = [
      `${id}`,
      letter.type,
      letter.reason,
      formatTime(letter.time),
      formatCount(letter.attempts),
      formatBytes(letter.bytes),
    ]
    return element(
      'tr',
      {},
      ...cells.map((cell) => element('td', {}, cell)),
      element('td', { class: 'wrap' }, letter.last_error ?? '–'),
      element(
        'td',
        { class: 'actions' },
        button('Show', () => void this.#show(letterInput)),
        ...(this.#options.may('manage')
          ? [
              button('Replay', () => void this.#act('replayDeadLetter', letterInput)),
              button('Drop', () => {
                if (this.#options.confirm(`Drop dead letter ${id}?`)) {
                  void this.#act('dropDeadLetter', letterInput)
                }
              }),
            ]
          : []),
      ),
    )
  }

  async #show(input: PageInput<'getDeadLetter'>): Promise<void> {
    const letter = await this.#options.api.call('getDeadLetter', input).catch(this.#fail)
    if (letter === undefined) return
    this.#payload.textContent = JSON.stringify(letter.update, undefined, 1)
    this.#payload.hidden = false
    this.#payload.focus()
  }

  #turn(after: number): void {
    this.#after = after
    void this.refresh().catch(this.#fail)
  }

  #replayAll(): void {
    if (this.#options.confirm('Push all dead letters of this queue again?')) {
      void this.#act('replayDeadLetters', ofQueue(this.#options.queue, {}))
    }
  }

  #dropAll(): void {
    if (this.#options.confirm('Drop all dead letters of this queue? They cannot be restored.')) {
      void this.#act('dropDeadLetters', ofQueue(this.#options.queue, {}))
    }
  }

  async #act<Id extends PageCall>(id: Id, input: PageInput<Id>): Promise<void> {
    await this.#options.api.call(id, input).catch(this.#fail)
    await this.refresh().catch(this.#fail)
  }

  readonly #fail = (error: unknown): undefined => {
    setElementText(this.#count, errorText(error))
  }
}

function countText(total: number): string {
  if (total === 0) return 'No dead letters.'
  return total === 1 ? '1 dead letter' : `${formatCount(total)} dead letters`
}

function buttonOf(text: string, act: () => void): HTMLButtonElement {
  return element('button', { type: 'button', onclick: act }, text)
}
