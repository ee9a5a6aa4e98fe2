/**
 * The keyboard of lists: the arrows move from the field that narrows a list through its rows, each of which is a link that Enter
 * follows.
 */

const searchSelector = '[data-search]'
const rowSelector = '.row-link'

/** Handles a key that moves through rows. */
export function handleRowKeys(event: KeyboardEvent, root: ParentNode): void {
  const { key, ctrlKey, metaKey, altKey } = event
  if (ctrlKey || metaKey || altKey) return
  const step = steps[key]
  const target = step === undefined ? undefined : rowOf(step, root)
  if (target === undefined) return
  event.preventDefault()
  target.focus({ preventScroll: true })
  target.scrollIntoView({ block: 'nearest' })
  if (target instanceof HTMLInputElement) target.select()
}

function rowOf(step: number, root: ParentNode): HTMLElement | undefined {
  const active = document.activeElement
  const search = root.querySelector<HTMLElement>(searchSelector) ?? undefined
  return rowAt(step, { root, active, search })
}

const steps: Readonly<Record<string, number>> = { ArrowDown: 1, ArrowUp: -1 }

interface RowSearch {
  readonly root: ParentNode
  readonly active: Element | null
  readonly search: HTMLElement | undefined
}

/** Returns the row that is this many below the present one; the search is above the first. */
function rowAt(step: number, { root, active, search }: RowSearch): HTMLElement | undefined {
  // Another card has other rows.
  const card = active?.closest('.card') ?? root
  const rows = [...card.querySelectorAll<HTMLElement>(rowSelector)]
  const at = rows.findIndex((row) => row === active)
  if (at < 0 && active !== search) return undefined
  const next = at + step
  if (next >= 0) return rows[next]
  return card.contains(search ?? null) ? search : undefined
}

/** Whether the reader is in a field that takes what is typed. */
export function isTyping(): boolean {
  const field = 'input:not([type="checkbox"], [type="radio"]), textarea, select'
  return document.activeElement?.matches(field) === true
}
