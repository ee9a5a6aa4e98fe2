/** `postbote tail`: shows live what happens to a queue of a bot, each event as a line for people or for programs. */
import type { Static, TSchema } from 'typebox'
import { updateIn } from '../../api/update-in.ts'
import * as is from '../../api/words.ts'
import type { StreamedEvent } from '../../cli/event-stream-reader.ts'
import { followCall } from '../../cli/follow-call.ts'
import { harmless } from '../../cli/output/text-table.ts'
import { remoteCommand } from '../../cli/remote/remote-command.ts'
import { onOff } from '../../config/config-values.ts'
import { utcText, waitingClock } from '../../kit/clock.ts'
import { counted } from '../../kit/text/counted.ts'
import { tailOperations } from './tail-operations.ts'

const payloadsOption = {
  name: 'payloads',
  kind: onOff,
  sentence: 'Shows the updates themselves, too.',
} as const

export const tailCommand = remoteCommand(tailOperations.tailQueue, {
  sentence:
    'shows live what is pushed to a bot and confirmed, until SIGINT (Ctrl+C); it begins with the next event',
  options: [payloadsOption],
  run: (call, { id, query }) =>
    followCall(call, {
      operation: tailOperations.tailQueue,
      name: 'the tail',
      afterGap: 'what happened in between is not shown',
      inputAfter: () => ({ id, query: { ...query, payload: call.has(payloadsOption) } }),
      dataOf: tailDataOf,
      json: tailJson,
      line: (event) => tailLine(event, waitingClock.nowMs()),
    }),
})

/** What the events have. docs/use/api.md says more. */
const tailData = {
  update: is.object({ update_id: is.integer(), type: is.text(), bytes: is.integer() }),
  confirmed: is.object({ count: is.integer(), below: is.integer() }),
  dropped: is.object({ count: is.integer(), below: is.integer() }),
  missed: is.object({ count: is.integer() }),
} as const

type TailData = Static<(typeof tailData)['update']> & Static<(typeof tailData)['confirmed']>

/** Returns the fields that an event of this name has; undefined for one of a later server. */
export function tailDataOf(name: string): TSchema | undefined {
  return new Map<string, TSchema>(Object.entries(tailData)).get(name)
}

/**
 * Returns an event as JSON on one line: the fields that the server sent, byte for byte, after the name of the event. The
 * line breaks in it are between tokens of JSON, because none can be within a string.
 */
export function tailJson({ name, data }: StreamedEvent): string {
  return `{"event":${JSON.stringify(name)},${onOneLine(data).slice(1)}`
}

/** Returns an event for people. `nowMs` is the wall time at which it has arrived, since events have no time of their own. */
export function tailLine(event: StreamedEvent, nowMs: number): string {
  return harmless(`${utcText(nowMs)}  ${textOf(event)}`)
}

function textOf({ name, data }: StreamedEvent): string {
  const fields: TailData = JSON.parse(data)
  const { update_id: id, type, bytes, count, below } = fields
  switch (name) {
    case 'update':
      return `update ${id}  ${type}  ${counted(bytes, 'byte')}${payloadText(data)}`
    case 'confirmed':
      return `confirmed ${counted(count, 'update')} below ${below}`
    case 'dropped':
      return `dropped ${counted(count, 'update')} below ${below}, which the bot did not want`
    case 'missed':
      return `missed ${counted(count, 'event')}, because this reader was too slow`
    default:
      // A later server may have more.
      return `${name} ${onOneLine(data)}`
  }
}

function payloadText(data: string): string {
  const update = updateIn(data)
  return update === '' ? '' : `  ${onOneLine(update)}`
}

function onOneLine(json: string): string {
  return json.replaceAll('\n', ' ')
}
