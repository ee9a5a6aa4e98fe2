/**
 * What an operator wants to know of the getUpdates calls of a queue: how many updates they got and confirmed in each minute of the
 * last hour, which program made them, and how often two programs have met.
 *
 * The minutes are a ring of 60 rows in one typed array of 480 bytes, which is created when a poll gets or confirms something first:
 * many bots wait for updates that never come. Of the minutes between two rows, nothing is written until the later one is.
 *
 *     | fetched | confirmed |     32 bits are enough: a poll gets 100 updates
 *
 * Of a program, only the last one is known, and the one before. A poll of the same program compares three texts and writes nothing.
 */
import type { IncomingMessage } from 'node:http'
import { reportedAddress } from '../http/client.ts'
import { requestOrigin } from '../http/connection-origin.ts'
import { setLast } from '../kit/set-last.ts'
import { shownText } from '../kit/text/shown-text.ts'
import type { QueueId } from '../shard/records/record-keys.ts'

/** A bot has so many minutes. */
export const pollActivityMinutes = 60
/** A User-Agent is shown up to this length. Chosen: those of libraries are shorter, and those of browsers say enough by then. */
export const userAgentLengthMax = 128
/**
 * The activities of this many queues are kept per worker, beside those of bots in memory: 10 MB if all of them are busy, and two
 * programs with long names poll each.
 */
export const pollActivitiesMax = 10_000
const columns = 2
const msPerMinute = 60_000

/** A program that polls, as it is shown. */
export interface PollClient {
  /** Undefined if it sends none. */
  readonly userAgent: string | undefined
  readonly address: string
}

/** How many updates polls got and confirmed in each minute, the present minute last. */
export interface PolledMinutes {
  readonly fetched: readonly number[]
  readonly confirmed: readonly number[]
}

export class PollActivity {
  #rows: Uint32Array | undefined
  /** Minutes since 1970. */
  #lastMinute = 0
  #client: SeenClient | undefined
  #before: SeenClient | undefined
  #conflicts = 0
  #conflictMs: number | undefined

  /** The program that polled last; undefined if none is known. */
  get client(): PollClient | undefined {
    return this.#client?.shown
  }

  /** The last one before it with another address or User-Agent. */
  get clientBefore(): PollClient | undefined {
    return this.#before?.shown
  }

  /** How often two programs have met, since the worker was started. */
  get conflicts(): number {
    return this.#conflicts
  }

  /** When they did last, wall time. */
  get conflictMs(): number | undefined {
    return this.#conflictMs
  }

  /** A call of a program arrives. This runs for every poll. */
  polledBy(request: IncomingMessage): void {
    if (this.#client?.sends(request) === true) return
    const before = this.#before
    this.#before = this.#client
    // Two programs that poll in turns are not described again each time.
    this.#client = before?.sends(request) === true ? before : new SeenClient(request)
  }

  /** A poll got updates. */
  fetched(count: number, nowMs: number): void {
    this.#add(0, count, nowMs)
  }

  /** A poll has confirmed updates. */
  confirmed(count: number, nowMs: number): void {
    this.#add(1, count, nowMs)
  }

  /** Two programs have met: one got 409, or another one took over from it. */
  met(nowMs: number): void {
    this.#conflicts += 1
    this.#conflictMs = nowMs
  }

  /** Returns how many updates polls got and confirmed in each minute of the last hour, the present minute last. */
  lastHour(nowMs: number): PolledMinutes {
    const first = Math.floor(nowMs / msPerMinute) - pollActivityMinutes + 1
    const minutes = Array.from({ length: pollActivityMinutes }, (_, nth) => first + nth)
    return {
      fetched: minutes.map((minute) => this.#at(minute, 0)),
      confirmed: minutes.map((minute) => this.#at(minute, 1)),
    }
  }

  #add(column: number, count: number, nowMs: number): void {
    const rows = (this.#rows ??= new Uint32Array(pollActivityMinutes * columns))
    const minute = Math.floor(nowMs / msPerMinute)
    if (minute !== this.#lastMinute) this.#skipTo(rows, minute)
    const at = placeOf(minute) + column
    rows[at] = (rows[at] ?? 0) + count
  }

  /** Nothing happened in the minutes between. A clock that was set back begins anew. */
  #skipTo(rows: Uint32Array, minute: number): void {
    const gap = minute - this.#lastMinute
    if (gap < 0 || gap >= pollActivityMinutes) rows.fill(0)
    else {
      for (let each = this.#lastMinute + 1; each <= minute; each++) {
        rows.fill(0, placeOf(each), placeOf(each) + columns)
      }
    }
    this.#lastMinute = minute
  }

  #at(minute: number, column: number): number {
    const isKept = minute <= this.#lastMinute && minute > this.#lastMinute - pollActivityMinutes
    return isKept ? (this.#rows?.[placeOf(minute) + column] ?? 0) : 0
  }
}

function placeOf(minute: number): number {
  return (minute % pollActivityMinutes) * columns
}

/**
 * The activities of the queues of a worker that are polled, limited to those whose bots were loaded last. An activity must survive
 * the unloading of its bot, because operators ask who has polled when nobody does any more.
 */
export class PollActivities {
  readonly #max: number
  /** The one that was asked for last is last. */
  readonly #activities = new Map<QueueId, PollActivity>()

  constructor(max: number = pollActivitiesMax) {
    this.#max = max
  }

  /** Returns the activity of a queue that is polled. Creates it if there is none. */
  of(queue: QueueId): PollActivity {
    const activity = this.#activities.get(queue) ?? new PollActivity()
    const oldest = setLast(this.#activities, [queue, activity], this.#max)
    if (oldest !== undefined) this.forget(oldest)
    return activity
  }

  /** Returns an activity for reading. Creates none. */
  find(queue: QueueId): PollActivity | undefined {
    return this.#activities.get(queue)
  }

  forget(queue: QueueId): void {
    this.#activities.delete(queue)
  }
}

/** A program as it was seen, with its User-Agent up to what is shown of it: a header may have several KiB. */
class SeenClient {
  readonly shown: PollClient
  readonly #beginning: string
  readonly #length: number
  readonly #socketAddress: string
  readonly #realIp: string | undefined

  constructor(request: IncomingMessage) {
    const userAgent = userAgentOf(request)
    this.#beginning = copied(userAgent.slice(0, userAgentLengthMax))
    this.#length = userAgent.length
    this.#socketAddress = socketAddressOf(request)
    this.#realIp = realIpOf(request)
    const text = shownText(userAgent, { bytesMax: userAgentLengthMax }).trim()
    this.shown = {
      userAgent: text === '' ? undefined : text,
      address: reportedAddress(this.#socketAddress, this.#realIp),
    }
  }

  /** Whether a request comes from this program. */
  sends(request: IncomingMessage): boolean {
    const userAgent = userAgentOf(request)
    return (
      this.#length === userAgent.length &&
      userAgent.startsWith(this.#beginning) &&
      this.#socketAddress === socketAddressOf(request) &&
      this.#realIp === realIpOf(request)
    )
  }
}

function userAgentOf({ headers }: IncomingMessage): string {
  return headers['user-agent'] ?? ''
}

/** Empty for a Unix socket. */
function socketAddressOf(request: IncomingMessage): string {
  return requestOrigin(request)?.clientAddress ?? ''
}

/** A longer header is no address, whatever it says. */
const addressLengthMax = 64

/** Undefined also if it can be no address. */
function realIpOf({ headers }: IncomingMessage): string | undefined {
  const header = headers['x-real-ip']
  return typeof header === 'string' && header.length <= addressLengthMax ? header : undefined
}

/** A part of a text keeps all of it in memory. */
function copied(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1')
}
