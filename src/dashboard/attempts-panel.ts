/** The last attempts to deliver, as they happen. */
import { element } from './element.ts'
import { formatCount, formatTime } from './format.ts'
import type { AttemptShape } from './shapes.ts'

export class AttemptsPanel {
  readonly root: HTMLElement
  readonly #body = element('tbody')
  readonly #empty = element('p', { class: 'faint' }, 'No attempts yet.')
  readonly #table: HTMLElement
  #shown = ''

  constructor() {
    const titles = ['Time', 'Update', 'Status', 'Took', 'Result', 'Next try']
    const heads = titles.map((title) => element('th', { scope: 'col' }, title))
    this.#table = element(
      'div',
      {
        class: 'scroll short',
        tabindex: 0,
        role: 'region',
        'aria-label': 'Attempts',
        hidden: true,
      },
      element('table', {}, element('thead', {}, element('tr', {}, ...heads)), this.#body),
    )
    this.root = element(
      'section',
      { class: 'card' },
      element('h2', {}, 'Attempts'),
      this.#empty,
      this.#table,
    )
  }

  /** Shows attempts, newest first. */
  show(attempts: readonly AttemptShape[]): void {
    const shown = JSON.stringify(attempts)
    if (shown === this.#shown) return
    this.#shown = shown
    this.#empty.hidden = attempts.length > 0
    this.#table.hidden = attempts.length === 0
    this.#body.replaceChildren(...attempts.map(rowOf))
  }
}

/** How long an attempt took. */
export function durationText({ duration_ms: ms }: AttemptShape): string {
  return `${formatCount(ms)} ms`
}

function rowOf(attempt: AttemptShape): HTMLElement {
  const result = attempt.error ?? 'delivered'
  return element(
    'tr',
    {},
    element('td', {}, formatTime(attempt.time)),
    element('td', {}, `${attempt.update_id ?? '–'}`),
    element('td', {}, `${attempt.status ?? '–'}`),
    element('td', {}, durationText(attempt)),
    element('td', { class: attempt.error === null ? 'wrap healthy' : 'wrap failing' }, result),
    element('td', {}, formatTime(attempt.next_retry)),
  )
}
