/** Opens the log of events of a server whose files are in its data directory. */
import { EventFile, type StoredEvents } from './event-file.ts'
import { EventLog } from './event-log.ts'
import type { Log, Surroundings } from '../surroundings.ts'

export interface OpenEventLogOptions extends Pick<Surroundings, 'clock' | 'counters'> {
  /** The data directory. */
  readonly directory: string
  /** The name of this server among several that share a database. */
  readonly node: string | undefined
  readonly log: Pick<Log, 'warn'>
}

/** The log, and what must be awaited before the process ends. */
export interface OpenedEventLog {
  readonly events: EventLog
  close(): Promise<void>
}

/** A disk that does not take events is reported once in this time. */
const eventFileWarningMs = 60_000

/** Never rejects: without its files the log begins empty, and lasts as long as the process. */
export async function openEventLog(options: OpenEventLogOptions): Promise<OpenedEventLog> {
  const { directory, clock, counters, log } = options
  let nextWarningMs = Number.NEGATIVE_INFINITY
  const failed = (error: unknown): void => {
    const nowMs = clock.monotonicMs()
    if (nowMs < nextWarningMs) return
    nextWarningMs = nowMs + eventFileWarningMs
    log.warn({ error: String(error) }, 'events could not be stored; a restart will not know them')
  }
  const file = new EventFile(directory, failed)
  let stored: StoredEvents = { events: [], deliveredTo: undefined }
  try {
    stored = await file.open()
  } catch (error) {
    failed(error)
  }
  const events = new EventLog({ clock, counters, node: options.node, stored, file })
  return { events, close: () => file.close() }
}
