import { element, setElementText } from './element.ts'
import { errorText } from './error-text.ts'

/** A line that says how something has ended; a screen reader says it, too. */
export interface StatusLine {
  readonly root: HTMLElement
  readonly say: (text: string) => void
  /** Acts, and says what the action returns, or why it failed. */
  readonly run: (act: () => Promise<string>) => void
}

/**
 * Makes an empty line.
 *
 * @param style - classes of page.css
 * @param role - `alert` interrupts a screen reader
 */
export function statusLine(style: string, role: 'status' | 'alert' = 'status'): StatusLine {
  const root = element('p', { role, class: style })
  const say = (text: string): void => setElementText(root, text)
  const run = (act: () => Promise<string>): void => {
    void act().then(say, (error: unknown) => say(errorText(error)))
  }
  return { root, say, run }
}
