/** `postbote events`: shows what the operator of a server should know, and follows it. */
import { waitingClock } from '../../clock.ts'
import { wholeNumber } from '../../config/config-values.ts'
import { eventsKeptMax } from '../../events/limits.ts'
import { eventOperations } from '../../operations/event-operations.ts'
import type { CommandCall } from '../commands/command-call.ts'
import type { ParsedCommand } from '../commands/command-row.ts'
import { jsonOption } from '../commands/json-option.ts'
import { printJsonLine } from '../output/print-json.ts'
import { tailIdleMsMax } from '../limits.ts'
import { eventJson, eventLine } from './event-line.ts'
import { fieldOption } from './field-option.ts'
import { followTail } from './follow-tail.ts'
import { tell } from './print-result.ts'
import { privateApiOf, remoteOptions } from './private-api-of.ts'
import { untilInterrupted } from './until-interrupted.ts'

const lastOption = {
  name: 'last',
  kind: wholeNumber(0, eventsKeptMax),
  default: '10',
  sentence: 'Begins with so many events of the past.',
} as const

const typeOption = fieldOption(eventOperations.followEvents, 'type', {
  defaultShown: 'all types',
  sentence: 'Shows only events of this type.',
})

export const eventsCommand: ParsedCommand = {
  kind: 'parsed',
  name: 'events',
  sentence:
    'shows events for the operator, such as failing webhooks, full queues and lost workers, until SIGINT (Ctrl+C)',
  arguments: [],
  options: [lastOption, typeOption, ...remoteOptions],
  run: events,
}

async function events(call: CommandCall): Promise<void> {
  const isJson = call.has(jsonOption)
  const type = call.get(typeOption)
  const last = call.get(lastOption)
  const api = await privateApiOf(call)
  await untilInterrupted((signal) =>
    followTail({
      clock: waitingClock,
      signal,
      name: 'the stream of events',
      afterGap: 'it has all events since',
      open: (lastId) => {
        const query = { ...(lastId === undefined ? { last } : { after: lastId }), type }
        const patience = { idleMs: tailIdleMsMax, signal }
        return api.follow(eventOperations.followEvents, { query }, patience)
      },
      onEvent: (event) => {
        if (isJson) printJsonLine(eventJson(event))
        else process.stdout.write(`${eventLine(event)}\n`)
      },
      tell,
    }),
  )
}
