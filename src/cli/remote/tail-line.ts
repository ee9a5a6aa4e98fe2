/** One event of a tail as a line, for people or for programs. Pure. */
import { utcText } from '../../clock.ts'
import { harmless } from '../text-table.ts'
import type { StreamedEvent } from './event-stream-reader.ts'

/** What the events have, all of them together. docs/api.md says which event has what. */
interface TailData {
  readonly update_id: number
  readonly type: string
  readonly bytes: number
  readonly update?: object
  readonly count: number
  readonly below: number
}

/**
 * Returns an event as JSON on one line: the fields that the server sent, byte for byte, after the name of the event. The
 * line breaks in it are between tokens of JSON, because none can be within a string.
 */
export function tailJson({ name, data }: StreamedEvent): string {
  return `{"event":${JSON.stringify(name)},${data.slice(1).replaceAll('\n', ' ')}`
}

/** Returns an event for people. `nowMs` is the wall time at which it has arrived, since events have no time of their own. */
export function tailLine({ name, data }: StreamedEvent, nowMs: number): string {
  const fields: TailData = JSON.parse(data)
  return harmless(`${utcText(nowMs)}  ${textOf(name, fields)}`)
}

function textOf(name: string, { update, ...fields }: TailData): string {
  const { update_id: id, type, bytes, count, below } = fields
  switch (name) {
    case 'update': {
      const facts = `update ${id}  ${type}  ${bytes} bytes`
      return update === undefined ? facts : `${facts}  ${JSON.stringify(update)}`
    }
    case 'confirmed':
      return `confirmed ${updatesText(count)} below ${below}`
    case 'dropped':
      return `dropped ${updatesText(count)} below ${below}, which the bot did not want`
    case 'missed':
      return `missed ${count} events, because this reader was too slow`
    default:
      // A later server may have more.
      return `${name} ${JSON.stringify(fields)}`
  }
}

function updatesText(count: number): string {
  return count === 1 ? '1 update' : `${count} updates`
}
