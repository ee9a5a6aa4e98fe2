/** `postbote server history`: what the server did, minute by minute. `postbote server types`: the updates that it knows. */
import * as is from '../../api/words.ts'
import type { ResultOf } from '../../api/operation.ts'
import { serverOperations } from './server-operations.ts'
import { listOptions } from '../../cli/output/view.ts'
import { fieldNames, listLines } from '../../cli/remote/cells.ts'
import { remoteCommand } from '../../cli/remote/remote-command.ts'

type History = ResultOf<typeof serverOperations.getServerHistory>

/** A minute, in the order of what matters. The lists of the result are its fields. */
const minute = is.object({
  time: is.time('When the minute begins.'),
  ...serverOperations.getServerHistory.result().properties.updates.properties,
  webhook_p50_ms: is.percentileMs('Half'),
  webhook_p99_ms: is.percentileMs('99 %'),
  polling_p50_ms: is.percentileMs('Half'),
  polling_p99_ms: is.percentileMs('99 %'),
})

export const historyCommand = remoteCommand(serverOperations.getServerHistory, {
  sentence:
    'shows what the server did in each of the last minutes, and how long updates waited for their bots',
  // A day is longer than a screen.
  fields: {
    minutes: { default: '60', sentence: 'Shows this many minutes, up to the present one.' },
  },
  options: listOptions(fieldNames(minute)),
  lines: (history, view) => {
    const columns = fieldNames(minute)
    return listLines({ item: minute, items: minutesOf(history), columns }, view)
  },
})

/** Returns a line for each minute. */
function minutesOf({ from, updates, delivery }: History): readonly object[] {
  const columns = [
    ...Object.entries(updates),
    ...Object.entries(delivery).flatMap(([mode, times]) =>
      Object.entries(times).map(([name, values]) => [`${mode}_${name}`, values] as const),
    ),
  ]
  return updates.pushed.map((_, nth) => ({
    time: from + nth * 60,
    ...Object.fromEntries(columns.map(([name, values]) => [name, values[nth] ?? null])),
  }))
}

export const typesCommand = remoteCommand(serverOperations.listUpdateTypes)
