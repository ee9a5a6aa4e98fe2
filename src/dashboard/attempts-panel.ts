/** The last attempts to deliver, as they happen. */
import { type Column, dataTable } from './data-table.ts'
import { cardElement, element } from './element.ts'
import { formatCount, formatTime } from './format.ts'
import type { PagePart } from './page-part.ts'
import type { AttemptShape } from './shapes.ts'

const columns: readonly Column<AttemptShape>[] = [
  { title: 'Time', cell: ({ time }) => formatTime(time) },
  { title: 'Update', cell: (attempt) => `${attempt.update_id ?? '–'}` },
  { title: 'Status', cell: ({ status }) => `${status ?? '–'}` },
  { title: 'Took', cell: durationText },
  {
    title: 'Result',
    cell: ({ error }) => error ?? 'delivered',
    style: 'wrap',
    tone: ({ error }) => (error === null ? 'healthy' : 'failing'),
  },
  { title: 'Next try', cell: (attempt) => formatTime(attempt.next_retry) },
]

/** Shows attempts, newest first. */
export function attemptsPanel(): PagePart<readonly AttemptShape[]> {
  const empty = element('p', { class: 'faint' }, 'No attempts yet.')
  const table = dataTable('Attempts', columns, 'scroll short')
  const show = (attempts: readonly AttemptShape[]): void => {
    empty.hidden = attempts.length > 0
    table.show(attempts)
  }
  return { root: cardElement('Attempts', empty, table.root), show }
}

/** How long an attempt took. */
export function durationText({ duration_ms: ms }: AttemptShape): string {
  return `${formatCount(ms)} ms`
}
