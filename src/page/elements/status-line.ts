import { element } from './element.ts'
import { errorText } from './error-text.ts'
import { type Message, setMessage } from './message.ts'

/** A line that says how something has ended; a screen reader says it, too. */
export interface StatusLine {
  readonly root: HTMLElement
  readonly say: (message: Message) => void
  /** Acts, and says what the action returns, or why it failed. */
  readonly run: (act: () => Promise<Message>) => void
}

/**
 * Makes an empty line.
 *
 * @param style - classes of page.css
 * @param role - `alert` interrupts a screen reader
 */
export function statusLine(style: string, role: 'status' | 'alert' = 'status'): StatusLine {
  const root = element('p', { role, class: style })
  const say = (message: Message): void => setMessage(root, message)
  const run = (act: () => Promise<Message>): void => {
    void act().then(say, (error: unknown) => say(errorText(error)))
  }
  return { root, say, run }
}
