/**
 * The search over any view: a field, and below it what the text finds. The focus stays in the field, as the combobox pattern of ARIA
 * wants it: the arrows move a mark through the options, Enter takes the marked one, Escape leads back to where the reader was.
 *
 * The options change as a whole when the answer to the present text arrives, so nothing moves under the pointer, and the answer to
 * an earlier text is dropped. Enter before the answer takes the first option of the answer. A slow server does not hold up what
 * needs no answer: that is shown after a moment.
 */
import { badgeElement } from '../elements/page-part.ts'
import type { BrowserClock } from '../elements/browser-clock.ts'
import { buttonElement, element } from '../elements/element.ts'
import { statusLine } from '../elements/messages.ts'

export interface PaletteEntry {
  readonly label: string
  /** What tells it from others with the same label. */
  readonly note?: string
  /** What kind of entry it is, or the state of a bot. */
  readonly kind: string
  readonly isState?: boolean
  readonly act: () => void
}

/** What a text finds. */
export interface PaletteAnswer {
  readonly entries: readonly PaletteEntry[]
  /** Says how many there are, that there is none, or what went wrong. */
  readonly note: string
}

export interface PaletteSource {
  /** Never rejects: a failure is a note. */
  readonly ask: (text: string) => Promise<PaletteAnswer>
  /** What is known without an answer of the server. */
  readonly known: (text: string) => readonly PaletteEntry[]
}

export interface PaletteOptions {
  readonly clock: BrowserClock
  readonly source: PaletteSource
  readonly onClosed: () => void
}

/** A word is one question. */
const typingPauseMs = 120
/** Chosen: who waits longer takes it for broken. */
const slowMs = 500

export class Palette {
  readonly #options: PaletteOptions
  readonly #field: HTMLInputElement
  readonly #list = element('ul', { id: 'found', role: 'listbox', 'aria-label': 'Found' })
  readonly #note = statusLine('faint')
  readonly #dialog: HTMLDialogElement
  #entries: readonly PaletteEntry[] = []
  /** The place of the marked option; none: -1. */
  #marked = -1
  /** Questions so far: the answer to an earlier one is dropped. */
  #asked = 0
  /** Whether the options are those of an earlier text. */
  #isOld = false
  /** Whether the reader has pressed Enter before the answer. */
  #isTaken = false
  #cancelTyping: (() => void) | undefined

  constructor(options: PaletteOptions) {
    this.#options = options
    this.#field = fieldElement(() => this.#typed())
    this.#dialog = dialogElement(this.#field, this.#list, this.#note.root)
    this.#dialog.addEventListener('keydown', (event) => this.#pressed(event))
    this.#dialog.addEventListener('close', () => this.#closed())
    this.#dialog.addEventListener('click', ({ target }) => {
      if (target === this.#dialog) this.close()
    })
    document.body.append(this.#dialog)
    this.#dialog.showModal()
    void this.#ask()
  }

  /** The focus is again where it was. */
  close(): void {
    this.#dialog.close()
  }

  #closed(): void {
    this.#cancelTyping?.()
    this.#asked += 1
    this.#dialog.remove()
    this.#options.onClosed()
  }

  #typed(): void {
    this.#cancelTyping?.()
    this.#asked += 1
    this.#isOld = true
    this.#isTaken = false
    this.#cancelTyping = this.#options.clock.after(typingPauseMs, () => void this.#ask())
  }

  async #ask(): Promise<void> {
    const { clock, source } = this.#options
    const text = this.#field.value
    const asked = ++this.#asked
    const cancelSlow = clock.after(slowMs, () => {
      if (asked === this.#asked) this.#show({ entries: source.known(text), note: 'Looking…' })
    })
    const answer = await source.ask(text)
    cancelSlow()
    if (asked !== this.#asked) return
    this.#show(answer)
    if (this.#isTaken) this.#take()
  }

  #show({ entries, note }: PaletteAnswer): void {
    const marked = this.#isOld ? undefined : this.#entries[this.#marked]
    const same = entries.findIndex((entry) => isSame(entry, marked))
    this.#isOld = false
    this.#entries = entries
    this.#list.replaceChildren(...entries.map((entry, nth) => this.#optionOf(entry, nth)))
    this.#list.hidden = entries.length === 0
    this.#field.setAttribute('aria-expanded', `${entries.length > 0}`)
    this.#note.say(note)
    this.#mark(same < 0 ? 0 : same)
  }

  #optionOf(entry: PaletteEntry, nth: number): HTMLElement {
    const option = optionElement(entry, nth)
    option.addEventListener('pointermove', () => {
      if (this.#marked !== nth) this.#mark(nth)
    })
    // The focus stays in the field.
    option.addEventListener('pointerdown', (event) => event.preventDefault())
    option.addEventListener('click', () => {
      this.#mark(nth)
      this.#take()
    })
    return option
  }

  #mark(wanted: number): void {
    const count = this.#entries.length
    this.#marked = count === 0 ? -1 : (wanted + count) % count
    for (const [nth, option] of [...this.#list.children].entries()) {
      option.setAttribute('aria-selected', `${nth === this.#marked}`)
      if (nth === this.#marked) option.scrollIntoView({ block: 'nearest' })
    }
    if (this.#marked < 0) this.#field.removeAttribute('aria-activedescendant')
    else this.#field.setAttribute('aria-activedescendant', optionId(this.#marked))
  }

  #pressed(event: KeyboardEvent): void {
    if (event.target !== this.#field || event.isComposing) return
    const isWithOthers = event.ctrlKey || event.metaKey || event.altKey || event.shiftKey
    const move = isWithOthers ? undefined : this.#moveOf(event.key)
    if (move === undefined) return
    event.preventDefault()
    move()
  }

  #moveOf(key: string): (() => void) | undefined {
    const moves: Readonly<Record<string, () => void>> = {
      ArrowDown: () => this.#mark(this.#marked + 1),
      ArrowUp: () => this.#mark(this.#marked - 1),
      Home: () => this.#mark(0),
      End: () => this.#mark(-1),
      Enter: () => this.#take(),
    }
    return moves[key]
  }

  #take(): void {
    this.#isTaken = this.#isOld
    const entry = this.#entries[this.#marked]
    if (this.#isOld || entry === undefined) return
    this.close()
    entry.act()
  }
}

function fieldElement(onTyped: () => void): HTMLInputElement {
  return element('input', {
    type: 'text',
    role: 'combobox',
    'aria-label': 'Search',
    'aria-expanded': 'false',
    'aria-controls': 'found',
    'aria-autocomplete': 'list',
    autocomplete: 'off',
    autocapitalize: 'off',
    spellcheck: 'false',
    enterkeyhint: 'go',
    maxlength: 256,
    placeholder: 'Id, name or webhook host of a bot, or a command',
    oninput: onTyped,
  })
}

function dialogElement(
  field: HTMLElement,
  list: HTMLElement,
  note: HTMLElement,
): HTMLDialogElement {
  const close = buttonElement('Close', () => dialog.close(), { style: 'quiet' })
  const hints = element(
    'span',
    { class: 'hints', 'aria-hidden': 'true' },
    ...[
      ['↑↓', 'move'],
      ['↵', 'open'],
      ['Esc', 'back'],
    ].flatMap(([key = '', what]) => [element('kbd', {}, key), ` ${what} `]),
  )
  const dialog = element(
    'dialog',
    { class: 'palette', 'aria-label': 'Search' },
    element('div', { class: 'palette-head' }, field, close),
    list,
    element('div', { class: 'palette-foot' }, note, hints),
  )
  return dialog
}

function optionElement({ label, note, kind, isState }: PaletteEntry, nth: number): HTMLElement {
  return element(
    'li',
    { role: 'option', id: optionId(nth), 'aria-selected': 'false' },
    element('span', { class: 'label' }, label),
    element('span', { class: 'faint note' }, note),
    isState === true ? badgeElement(kind) : element('span', { class: 'faint' }, kind),
  )
}

function optionId(nth: number): string {
  return `found-${nth}`
}

function isSame(entry: PaletteEntry, other: PaletteEntry | undefined): boolean {
  return entry.label === other?.label && entry.note === other.note && entry.kind === other.kind
}
