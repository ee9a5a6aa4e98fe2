/** The keys that do the same on every view: search, and a dialog that says what the keys do. */
import { buttonElement, buttonsElement, element } from '../elements/element.ts'
import { handleRowKeys, isTyping } from '../elements/row-keys.ts'

export interface PageKeys {
  readonly root: ParentNode
  readonly onSearch: () => void
  readonly onHelp: () => void
}

/** Handles a key of the document. A dialog has keys of its own. */
export function handlePageKeys(event: KeyboardEvent, { root, onSearch, onHelp }: PageKeys): void {
  if (document.querySelector('dialog[open]') !== null) return
  const act = isSearchChord(event) ? onSearch : plainKeys({ onSearch, onHelp })[event.key]
  const isChord = event.ctrlKey || event.metaKey || event.altKey
  const isMeant = isSearchChord(event) || (!isChord && !isTyping())
  if (act !== undefined && isMeant) {
    event.preventDefault()
    act()
  } else handleRowKeys(event, root)
}

function plainKeys({
  onSearch,
  onHelp,
}: Omit<PageKeys, 'root'>): Readonly<Record<string, () => void>> {
  return { '/': onSearch, '?': onHelp }
}

/** It types nothing, so it works in a field, too. */
function isSearchChord({ key, ctrlKey, metaKey, altKey, shiftKey }: KeyboardEvent): boolean {
  return key.toLowerCase() === 'k' && ctrlKey !== metaKey && !altKey && !shiftKey
}

const keys = [
  [['/', 'Ctrl K', '⌘ K'], 'Search: bots, pages and commands'],
  [['↑', '↓'], 'Move through rows, or through what was found'],
  [['↵'], 'Open what is marked'],
  [['Esc'], 'Back to where you were'],
  [['?'], 'Show these keys'],
] as const

/** Shows the dialog until the reader closes it. */
export function keysDialog(): void {
  const heading = element('h2', { id: 'keys-title' }, 'Keys')
  const dialog = element(
    'dialog',
    { 'aria-labelledby': heading.id },
    heading,
    element(
      'dl',
      { class: 'keys' },
      ...keys.flatMap(([names, what]) => [
        element('dt', {}, ...names.map((name) => element('kbd', {}, name))),
        element('dd', {}, what),
      ]),
    ),
    buttonsElement(buttonElement('Close', () => dialog.close())),
  )
  dialog.addEventListener('close', () => dialog.remove())
  document.body.append(dialog)
  dialog.showModal()
}
