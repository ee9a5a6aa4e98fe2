import { commandElement } from './copy-text.ts'
import { element } from './element.ts'

export interface EmptyState {
  /** What there is none of. */
  readonly title: string
  /** When there will be something. */
  readonly text: string
  /** What to type for that. */
  readonly command?: string
  /** Whether it is not shown at first, because the list may have items. */
  readonly isHidden?: boolean
}

/** Makes what stands in place of a list without items: it says what to do. */
export function emptyState({ title, text, command, isHidden = false }: EmptyState): HTMLElement {
  const root = element(
    'div',
    { class: 'empty' },
    element('strong', {}, title),
    text,
    command === undefined ? undefined : commandElement(command),
  )
  root.hidden = isHidden
  return root
}
