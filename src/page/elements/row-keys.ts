/**
 * The keyboard of the page: `/` leads to the search of the view, or to that of the first page. The arrows move from there through
 * the rows, each of which is a link that Enter follows.
 */

export const searchSelector = '[data-search]'
const rowSelector = '.row-link'

/**
 * Handles a key, unless the reader is typing something.
 *
 * @param onSearch - the reader wants to search, and the view has nothing to search
 */
export function handleRowKeys(event: KeyboardEvent, root: ParentNode, onSearch: () => void): void {
  const { key, ctrlKey, metaKey, altKey } = event
  if (ctrlKey || metaKey || altKey) return
  const target = targetOf(key, root)
  if (key === '/' && target === undefined && !isTyping()) {
    event.preventDefault()
    onSearch()
  }
  if (target === undefined) return
  event.preventDefault()
  target.focus({ preventScroll: true })
  target.scrollIntoView({ block: 'nearest' })
  if (target instanceof HTMLInputElement) target.select()
}

function targetOf(key: string, root: ParentNode): HTMLElement | undefined {
  const active = document.activeElement
  const search = root.querySelector<HTMLElement>(searchSelector) ?? undefined
  if (key === '/') return isTyping() ? undefined : search
  const step = steps[key]
  return step === undefined ? undefined : rowAt(step, { root, active, search })
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

function isTyping(): boolean {
  return document.activeElement?.matches('input, textarea, select') === true
}
