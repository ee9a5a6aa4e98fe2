/** Says what the keys do. */
import { buttonElement, buttonsElement, element } from '../elements/element.ts'

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
