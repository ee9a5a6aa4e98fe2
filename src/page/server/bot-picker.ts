/**
 * A field of a form in which bots are chosen by their names. What is typed finds bots, of which the arrows and Enter, or the pointer,
 * choose one; ids can be typed or pasted, too. The chosen ones stand below, each with a button that takes it out.
 *
 * The focus stays in the field, as the combobox pattern of ARIA wants it. The answer to an earlier text is dropped.
 */
import { badgeElement } from '../elements/page-part.ts'
import { buttonElement, element } from '../elements/element.ts'
import { statusLine } from '../elements/messages.ts'
import { textField } from '../elements/fields.ts'
import { rankOf, searchOf } from '../frame/search-of.ts'
import type { PageContext } from '../frame/page-context.ts'
import type { ListedBotShape } from '../frame/shapes.ts'

/** A word is one question. */
const typingPauseMs = 150
/** Chosen: all are seen without scrolling. */
const shownMax = 6
/** Chosen: the best of so many are shown, whichever ids they have. */
const askedMax = 100

interface Found {
  readonly id: string
  readonly name: string
  readonly option: HTMLElement
}

export class BotPicker {
  readonly root: HTMLElement
  readonly #context: Pick<PageContext, 'api' | 'clock'>
  readonly #input = comboElement()
  readonly #list = element('ul', {
    id: listId,
    role: 'listbox',
    'aria-label': 'Found bots',
    hidden: true,
  })
  readonly #chips = chipList(() => this.#input.focus())
  readonly #said = statusLine('hint')
  #found: readonly Found[] = []
  #marked = 0
  /** Questions so far: the answer to an earlier one is dropped. */
  #asked = 0
  #cancelTyping: (() => void) | undefined

  constructor(context: Pick<PageContext, 'api' | 'atEnd' | 'clock'>, label: string) {
    this.#context = context
    this.#input.addEventListener('input', () => this.#typed())
    this.#input.addEventListener('keydown', (event) => this.#pressed(event))
    this.#input.addEventListener('blur', () => this.#close())
    context.atEnd(() => this.#cancelTyping?.())
    this.root = element(
      'div',
      { class: 'field picker' },
      element('label', {}, label, this.#input),
      this.#list,
      this.#said.root,
      this.#chips.root,
    )
  }

  /** Returns the ids that were chosen, and what is typed besides, of which the server says whether it is one. */
  ids(): readonly string[] {
    return [...this.#chips.ids(), ...wordsIn(this.#input.value)]
  }

  clear(): void {
    this.#chips.clear()
    this.#emptied()
  }

  #typed(): void {
    this.#cancelTyping?.()
    this.#asked += 1
    const ids = endedIds(this.#input.value)
    for (const id of ids) this.#chips.add(id, '')
    if (ids.length > 0) this.#emptied()
    else this.#cancelTyping = this.#context.clock.after(typingPauseMs, () => void this.#ask())
  }

  #emptied(): void {
    this.#input.value = ''
    this.#said.say('')
    this.#close()
  }

  async #ask(): Promise<void> {
    const search = searchOf(this.#input.value)
    const asked = ++this.#asked
    if (search === '') {
      this.#emptied()
      return
    }
    const query = { search, details: true, limit: askedMax }
    const bots = await this.#context.api.call('listBots', { query }, { isAside: true }).then(
      (answer) => answer.bots,
      () => undefined,
    )
    if (asked !== this.#asked) return
    const best = (bots ?? [])
      .filter(({ bot_id: id }) => !this.#chips.has(`${id}`))
      .toSorted((a, b) => rankOf(a, search) - rankOf(b, search))
    this.#said.say(noteOf(bots?.length, best.length))
    this.#show(best.slice(0, shownMax).map((bot, nth) => this.#foundOf(bot, nth)))
  }

  #foundOf(bot: ListedBotShape, nth: number): Found {
    const option = optionElement(bot, `bot-found-${nth}`)
    const found = { id: `${bot.bot_id}`, name: `${bot.first_name} @${bot.username}`, option }
    option.addEventListener('pointermove', () => this.#mark(nth))
    // The focus stays in the field.
    option.addEventListener('pointerdown', (event) => event.preventDefault())
    option.addEventListener('click', () => this.#choose(found))
    return found
  }

  #show(found: readonly Found[]): void {
    this.#found = found
    this.#list.replaceChildren(...found.map(({ option }) => option))
    this.#list.hidden = found.length === 0
    this.#input.setAttribute('aria-expanded', `${found.length > 0}`)
    this.#mark(0)
  }

  #mark(nth: number): void {
    this.#marked = nth
    for (const [each, { option }] of this.#found.entries()) {
      option.setAttribute('aria-selected', `${each === nth}`)
    }
    const id = this.#found[nth]?.option.id
    if (id === undefined) this.#input.removeAttribute('aria-activedescendant')
    else this.#input.setAttribute('aria-activedescendant', id)
  }

  #choose({ id, name }: Found): void {
    this.#chips.add(id, name)
    this.#emptied()
  }

  #close(): void {
    this.#asked += 1
    this.#cancelTyping?.()
    this.#show([])
  }

  #pressed(event: KeyboardEvent): void {
    const { key } = event
    if (key === 'Backspace' && this.#input.value === '') this.#chips.removeLast()
    const found = this.#found[this.#marked]
    if (found === undefined) return
    const count = this.#found.length
    if (key === 'ArrowDown') this.#mark((this.#marked + 1) % count)
    else if (key === 'ArrowUp') this.#mark((this.#marked + count - 1) % count)
    else if (key === 'Enter') this.#choose(found)
    else if (key === 'Escape') this.#close()
    else return
    event.preventDefault()
    event.stopPropagation()
  }
}

const listId = 'bots-found'

function comboElement(): HTMLInputElement {
  const input = textField('bots', 'all bots; type to find some')
  input.setAttribute('role', 'combobox')
  input.setAttribute('aria-controls', listId)
  input.setAttribute('aria-autocomplete', 'list')
  input.setAttribute('aria-expanded', 'false')
  return input
}

/** Returns the ids of a text that is nothing else, after the last of which something was typed, or of which there are several. */
function endedIds(text: string): readonly string[] {
  const words = wordsIn(text)
  const isEnded = words.length > 1 || /[\s,;]$/.test(text)
  return isEnded && words.every((word) => /^\d+$/.test(word)) ? words : []
}

function wordsIn(text: string): readonly string[] {
  return text.split(/[\s,;]+/).filter(Boolean)
}

function noteOf(known: number | undefined, left: number): string {
  if (known === undefined) return 'The bots could not be searched: enter their ids.'
  if (left === 0) return known === 0 ? 'No bot has this name or id.' : 'It is chosen already.'
  return left > shownMax ? 'Type more to find others.' : ''
}

function optionElement(bot: ListedBotShape, id: string): HTMLElement {
  const { bot_id: botId, username, first_name: name } = bot
  const state = bot.paused === true ? 'paused' : (bot.health ?? bot.mode)
  return element(
    'li',
    { id, role: 'option', 'aria-selected': 'false' },
    element('span', { class: 'label' }, name),
    element('span', { class: 'faint note' }, `@${username} · ${botId}`),
    state === null ? undefined : badgeElement(state),
  )
}

interface ChipList {
  readonly root: HTMLElement
  readonly add: (id: string, name: string) => void
  readonly has: (id: string) => boolean
  readonly ids: () => readonly string[]
  readonly removeLast: () => void
  readonly clear: () => void
}

/** @param onRemoved - the button that had the focus is gone */
function chipList(onRemoved: () => void): ChipList {
  const root = element('ul', { class: 'chips', 'aria-label': 'Chosen bots', hidden: true })
  const chips = new Map<string, HTMLElement>()
  const remove = (id: string): void => {
    chips.get(id)?.remove()
    chips.delete(id)
    root.hidden = chips.size === 0
  }
  return {
    root,
    add(id, name) {
      if (chips.has(id)) return
      const take = buttonElement(
        '✕',
        () => {
          remove(id)
          onRemoved()
        },
        { style: 'quiet small' },
      )
      take.setAttribute('aria-label', `Remove ${name || id}`)
      const text = name === '' ? id : [`${name} `, element('span', { class: 'faint' }, id)]
      const chip = element('li', {}, element('span', {}, ...[text].flat()), take)
      chips.set(id, chip)
      root.append(chip)
      root.hidden = false
    },
    has: (id) => chips.has(id),
    ids: () => [...chips.keys()],
    removeLast() {
      const last = [...chips.keys()].at(-1)
      if (last !== undefined) remove(last)
    },
    clear() {
      for (const id of chips.keys()) remove(id)
    },
  }
}
