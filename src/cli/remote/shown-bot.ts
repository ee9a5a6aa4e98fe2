/** The state of a bot as a table: a line for each field, a column for each of its two queues. Pure. */
import type { TableRows } from '../output/text-table.ts'
import { cell, fieldCell } from './cells.ts'

/** The fields of a queue that `GET /v1/bots/:id` returns, among others. */
interface ShownQueue {
  readonly deliveries?: Readonly<Record<string, number>>
  readonly [field: string]: unknown
}

/** What `GET /v1/bots/:id` returns. */
export interface ShownBot extends ShownQueue {
  readonly bot_id: number
  readonly first_name: string
  readonly username: string
  readonly created_at: number
  readonly validate?: string | null
  readonly test: ShownQueue
}

/** Returns the table. Fields that a later server adds are shown, too. */
export function shownBot(bot: ShownBot): TableRows {
  const {
    bot_id: botId,
    first_name: firstName,
    username,
    created_at: createdAt,
    validate,
    test,
    ...queue
  } = bot
  return {
    head: ['field', 'queue', '/test/ queue'],
    rows: [
      ['bot_id', cell(botId)],
      ['first_name', cell(firstName)],
      ['username', cell(username)],
      ['registered', fieldCell('created_at', createdAt)],
      ['validate', cell(validate)],
      ...Object.keys(queue).map((field) => [
        field,
        queueCell(field, queue),
        queueCell(field, test),
      ]),
    ],
  }
}

function queueCell(field: string, queue: ShownQueue): string {
  if (field === 'deliveries') return countsCell(queue.deliveries ?? {})
  return fieldCell(field, queue[field])
}

/** Only what has happened is shown. */
function countsCell(counts: Readonly<Record<string, number>>): string {
  const shown = Object.entries(counts).filter(([, count]) => count > 0)
  return cell(shown.map(([name, count]) => `${name} ${count}`).join(', '))
}
