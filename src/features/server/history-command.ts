/** `postbote server history`: what the server did, minute by minute. `postbote server types`: the updates that it knows. */
import * as is from '../../api/words.ts'
import type { ResultOf } from '../../api/operation.ts'
import { serverOperations } from './server-operations.ts'
import { tableLines } from '../../cli/output/print-result.ts'
import { itemTable } from '../../cli/remote/cells.ts'
import { remoteCommand } from '../../cli/remote/remote-command.ts'

const minute = is.object({ time: is.time('When the minute begins.') })

export const historyCommand = remoteCommand(serverOperations.getServerHistory, {
  sentence:
    'shows what the server did in each of the last minutes, and how long updates waited for their bots',
  // A day is longer than a screen.
  fields: {
    minutes: { default: '60', sentence: 'Shows this many minutes, up to the present one.' },
  },
  lines: (history) => tableLines(itemTable(minute, minutesOf(history), ['time'], 'others')),
})

/** Returns a line for each minute. */
function minutesOf({
  from,
  updates,
  delivery,
}: ResultOf<typeof serverOperations.getServerHistory>) {
  const columns = [
    ...Object.entries(updates),
    ...Object.entries(delivery).flatMap(([mode, times]) =>
      Object.entries(times).map(([name, values]) => [`${mode} ${name}`, values] as const),
    ),
  ]
  return updates.pushed.map((_, nth) => ({
    time: from + nth * 60,
    ...Object.fromEntries(columns.map(([name, values]) => [name, values[nth] ?? null])),
  }))
}

export const typesCommand = remoteCommand(serverOperations.listUpdateTypes)
