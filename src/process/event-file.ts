/**
 * Keeps the events of a server across its restarts: lines of JSON in two files of the data directory that take turns.
 *
 *     events/0.ndjson, events/1.ndjson     {"id":N,"type":...}         an event, as the private API shows it
 *                                          {"delivered_to":N}          --events-url has all events up to this one
 *
 * When the current file is full, the other one is begun anew. So the two together always have the last events, and nothing
 * is ever rewritten. Lines are not synced: a power loss may cost the last ones, and the log begins after any id that they
 * may have had. A disk that fails costs lines, and nothing waits for it.
 */
import { appendFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { makePrivateDirectory } from '../store/write-file.ts'
import { readIfThere } from '../store/read-if-there.ts'
import { eventsKeptMax } from '../kit/limits.ts'
import type { LoggedEvent } from '../kit/operator-event.ts'

/** What the files had. */
export interface StoredEvents {
  /** The last events that are kept, in the order of their ids. */
  readonly events: readonly LoggedEvent[]
  /** Where the delivery to `--events-url` goes on; undefined if there was none. */
  readonly deliveredTo: number | undefined
}

interface ReadFile extends StoredEvents {
  readonly lines: number
}

/**
 * A file of events has this many lines before the other one takes its turn. Half of them may be positions, so one full file
 * has all events that are kept.
 */
export const eventFileLinesMax = 2 * eventsKeptMax
/** Lines that wait for a disk that does not write; past that the oldest are left out of the file. */
const eventLinesWaitingMax = eventsKeptMax

export class EventFile {
  readonly #directory: string
  readonly #onFailure: (error: unknown) => void
  /** The file in use, 0 or 1, and the number of its lines. */
  #current = 0
  #lines = 0
  /** Whether the last line of the file in use may have no end. */
  #mayBeTorn = false
  #deliveredTo: number | undefined
  #waiting: string[] = []
  #writing: Promise<void> | undefined

  /**
   * @param directory - the data directory
   * @param onFailure - called when lines could not be written; they are lost
   */
  constructor(directory: string, onFailure: (error: unknown) => void) {
    this.#directory = join(directory, 'events')
    this.#onFailure = onFailure
  }

  /** Reads both files. Lines that cannot be read are skipped. Rejects if the directory cannot be used. */
  async open(): Promise<StoredEvents> {
    await makePrivateDirectory(this.#directory)
    const files = await Promise.all([this.#read(0), this.#read(1)])
    const [first, second] = files
    this.#current = lastIdOf(second) > lastIdOf(first) ? 1 : 0
    this.#lines = files[this.#current]?.lines ?? 0
    const events = [...first.events, ...second.events].toSorted((a, b) => a.id - b.id)
    const positions = files.flatMap(({ deliveredTo }) => deliveredTo ?? [])
    if (positions.length > 0) this.#deliveredTo = Math.max(...positions)
    this.#mayBeTorn = this.#lines > 0
    return { events: events.slice(-eventsKeptMax), deliveredTo: this.#deliveredTo }
  }

  /** Writes an event, soon. */
  add({ json }: LoggedEvent): void {
    this.#write(json)
  }

  /** Writes how far the events were delivered, soon. */
  deliveredTo(id: number): void {
    this.#deliveredTo = id
    this.#write(positionLine(id))
  }

  /** Resolves when everything is written, or has failed. */
  async close(): Promise<void> {
    await this.#writing
  }

  #write(line: string): void {
    if (this.#waiting.length >= eventLinesWaitingMax) this.#waiting.shift()
    this.#waiting.push(line)
    this.#writing ??= this.#writeAll()
  }

  async #writeAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const lines = this.#waiting
      this.#waiting = []
      try {
        await this.#append(lines)
      } catch (error) {
        this.#onFailure(error)
      }
    }
    this.#writing = undefined
  }

  async #append(lines: readonly string[]): Promise<void> {
    const isFull = this.#lines >= eventFileLinesMax
    if (!isFull) {
      const text = `${this.#mayBeTorn ? '\n' : ''}${textOf(lines)}`
      this.#mayBeTorn = true
      await appendFile(this.#path(this.#current), text, { mode: 0o600 })
      this.#mayBeTorn = false
      this.#lines += lines.length
      return
    }
    // The position may be in no later file otherwise.
    const position = this.#deliveredTo === undefined ? [] : [positionLine(this.#deliveredTo)]
    const other = 1 - this.#current
    await writeFile(this.#path(other), textOf([...position, ...lines]), { mode: 0o600 })
    this.#current = other
    this.#mayBeTorn = false
    this.#lines = position.length + lines.length
  }

  async #read(file: number): Promise<ReadFile> {
    const text = (await readIfThere(this.#path(file)))?.toString() ?? ''
    const lines = text.split('\n').filter((line) => line !== '')
    const events: LoggedEvent[] = []
    let deliveredTo: number | undefined
    for (const line of lines) {
      const fields = fieldsOf(line)
      if (isId(fields?.delivered_to)) deliveredTo = fields.delivered_to
      const { id, type, time } = fields ?? {}
      if (!isId(id) || !isType(type) || typeof time !== 'number') continue
      events.push({ id, type, timeMs: Math.round(time * 1_000), json: line })
    }
    return { lines: lines.length, events, deliveredTo }
  }

  #path(file: number): string {
    return join(this.#directory, `${file}.ndjson`)
  }
}

interface Fields {
  readonly id?: unknown
  readonly type?: unknown
  readonly time?: unknown
  readonly delivered_to?: unknown
}

function fieldsOf(line: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}

/**
 * A stored id above this is damage, because ids begin with the time in milliseconds: that of the year 5138. Ids that follow
 * such a one would soon be too long for the position of a reader (features/events/event-position.ts).
 */
const eventIdMax = 1e14

/** All later ids are higher than the stored ones, so a damaged one would remain forever. */
function isId(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0 && Number(value) <= eventIdMax
}

/** A later version may have more types. */
function isType(value: unknown): value is string {
  return typeof value === 'string' && /^[a-z_.]{1,64}$/.test(value)
}

function lastIdOf({ events }: StoredEvents): number {
  return events.at(-1)?.id ?? -1
}

function positionLine(id: number): string {
  return JSON.stringify({ delivered_to: id })
}

function textOf(lines: readonly string[]): string {
  return `${lines.join('\n')}\n`
}
