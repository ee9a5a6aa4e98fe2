/**
 * Splits the text of server-sent events (HTML standard, 9.2), which arrives in any parts, into events. Comments and times
 * to reconnect are skipped. Lines end with LF alone, as the server writes them. A line that is no field is not of the server,
 * although the standard skips it. Pure.
 */
import { privateApiResponseBytesMax } from './limits.ts'
import { ForeignResponseError } from './remote/remote-api.ts'

/** One event. The lines of its data are joined by line breaks. */
export interface StreamedEvent {
  readonly name: string
  readonly data: string
}

export class EventStreamReader {
  /** The id of the last event that had one, or of the position after it; undefined if there was none. */
  lastId: string | undefined
  #line: string[] = []
  #name = ''
  #data: string[] = []
  #id: string | undefined
  /** Of the event that is not complete. */
  #length = 0

  /**
   * Returns the events that this part of the text completes.
   *
   * @throws Error if an event is larger than `privateApiResponseBytesMax`; ForeignResponseError for a line that is no field.
   */
  take(text: string): readonly StreamedEvent[] {
    const lines = text.split('\n')
    const events: StreamedEvent[] = []
    for (const [nth, part] of lines.entries()) {
      this.#line.push(part)
      this.#length += part.length
      if (this.#length > privateApiResponseBytesMax) throw new Error('an event is too large')
      if (nth === lines.length - 1) break
      const line = this.#line.join('')
      this.#line = []
      if (line === '') events.push(...this.#complete())
      else this.#field(line)
    }
    return events
  }

  #field(line: string): void {
    const [, name, value = ''] = /^(\w+): ?(.*)$/s.exec(line) ?? []
    if (name === 'event') this.#name = value
    else if (name === 'data') this.#data.push(value)
    else if (name === 'id') this.#id = value
    else if (name !== 'retry' && !line.startsWith(':')) throw new ForeignResponseError()
  }

  #complete(): readonly StreamedEvent[] {
    const event = { name: this.#name, data: this.#data.join('\n') }
    this.lastId = this.#id ?? this.lastId
    this.#name = ''
    this.#data = []
    this.#length = 0
    return event.data === '' ? [] : [event]
  }
}
