/** `postbote events`: shows what the operator of a server should know, and follows it: an event a line, for people or programs. */
import { eventOperations } from './event-operations.ts'
import { followCall } from '../../cli/follow-call.ts'
import { remoteCommand } from '../../cli/remote/remote-command.ts'
import type { Static, TSchema } from 'typebox'
import * as is from '../../api/words.ts'
import { systemClock, utcText } from '../../kit/clock.ts'
import { eventsKeptMax } from '../../kit/limits.ts'
import { timePoint } from '../../config/time-point.ts'
import { harmless } from '../../cli/output/text-table.ts'
import type { StreamedEvent } from '../../cli/event-stream-reader.ts'

const sinceOption = {
  name: 'since',
  kind: timePoint(systemClock, 'now'),
  defaultShown: 'the events of --last',
  sentence: `Begins with the events since this time, of the last ${eventsKeptMax.toLocaleString('en')} that the server keeps; --last does not count then.`,
} as const

export const eventsCommand = remoteCommand(eventOperations.followEvents, {
  sentence:
    'shows events for the operator, such as failing webhooks, full queues and lost workers, until SIGINT (Ctrl+C)',
  fields: {
    last: { default: '10', sentence: 'Begins with so many events of the past.' },
    type: { defaultShown: 'all types' },
  },
  options: [sinceOption],
  run(call, { query: { last: asked, type } = {} }) {
    const sinceS = call.get(sinceOption)
    const last = sinceS === undefined ? asked : eventsKeptMax
    return followCall(call, {
      operation: eventOperations.followEvents,
      name: 'the stream of events',
      afterGap: 'it has all events since',
      inputAfter: (after) => ({ query: { ...(after === undefined ? { last } : { after }), type } }),
      dataOf: eventDataOf,
      isWanted: (event) => sinceS === undefined || isSince(event, sinceS),
      json: eventJson,
      line: eventLine,
    })
  },
})

/** Returns whether an event is not older; `missed` has no time. */
function isSince({ name, data }: StreamedEvent, sinceS: number): boolean {
  if (name === 'missed') return true
  const { time }: Static<typeof eventData> = JSON.parse(data)
  return time >= sinceS
}

const missedData = is.object({ count: is.integer() })
/** The fields of an event that every type has. docs/run/operations.md explains the others. */
const eventData = is.object({
  time: is.number('Unix time in seconds.'),
  node: is.optional(is.text()),
  text: is.text(),
})

export function eventDataOf(name: string): TSchema {
  return name === 'missed' ? missedData : eventData
}

/** Returns an event as JSON on one line. Events that the server no longer had are `{"type":"missed","count":N}`. */
export function eventJson({ name, data }: StreamedEvent): string {
  return name === 'missed' ? `{"type":"missed",${data.slice(1)}` : data
}

/** Returns an event for people. */
export function eventLine({ name, data }: StreamedEvent): string {
  if (name === 'missed') {
    const { count }: Static<typeof missedData> = JSON.parse(data)
    const kept = eventsKeptMax.toLocaleString('en')
    return `${count} or more events are missing: the server keeps the last ${kept}`
  }
  const { time, node, text }: Static<typeof eventData> = JSON.parse(data)
  const where = node === undefined ? '' : `${node}  `
  return harmless(`${utcText(time * 1_000)}  ${where}${name.padEnd(nameLength)}  ${text}`)
}

/** That of the longest type. */
const nameLength = 18
