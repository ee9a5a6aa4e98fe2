/**
 * Follows a tail, or the events for the operator, across the moments at which it ends: at a reload or a restart of the
 * server, when a worker is lost, or when the connection breaks.
 *
 *   opening --responds--> following --ends or breaks--> waiting --a pause--> opening
 *
 * Only the first opening may fail because no server responds, since a wrong address should be reported at once. Later
 * ones are repeated until the server is back.
 */
import { type Clock, sleep } from '../kit/clock.ts'
import { messageOf } from '../kit/errors.ts'
import { tailReconnectMs } from '../api/limits.ts'
import { CallRefusedError, ForeignResponseError } from './remote/remote-api.ts'
import { EventStreamReader, type StreamedEvent } from './event-stream-reader.ts'

/** The pause before a tail is opened again doubles up to this. Chosen: nobody notices it after a restart of the server. */
export const tailReopenMsMax = 5_000

export interface FollowTailOptions {
  readonly clock: Clock
  /** Ends the tail without an error. */
  readonly signal: AbortSignal
  /** How people are told of it, such as `the tail`. */
  readonly name: string
  /** What people should know of the time between the end and the next opening. */
  readonly afterGap: string
  /**
   * Begins a response. Its text throws if the connection is lost.
   *
   * @param lastId - the position in the response before; undefined if it had none
   */
  readonly open: (lastId: string | undefined) => Promise<AsyncIterable<string>>
  readonly onEvent: (event: StreamedEvent) => void
  /** Tells people what happens to the tail. */
  readonly tell: (text: string) => void
}

/**
 * Follows a tail until `signal` is aborted.
 *
 * @throws CallRefusedError if the server refuses the tail for good, such as because the bot was removed; Error if no
 *   server responds at first.
 */
export async function followTail(options: FollowTailOptions): Promise<void> {
  const { clock, signal, tell, name, afterGap } = options
  let hasBegun = false
  let lastId: string | undefined
  let pauseMs = tailReconnectMs
  let lastProblem = ''
  while (!signal.aborted) {
    try {
      const parts = await options.open(lastId)
      if (hasBegun) tell(`${name} continues; ${afterGap}`)
      hasBegun = true
      pauseMs = tailReconnectMs
      lastProblem = ''
      const reader = new EventStreamReader()
      try {
        await readEvents(parts, reader, options)
      } finally {
        lastId = reader.lastId ?? lastId
      }
      if (!signal.aborted) {
        tell(`the server has ended ${name}, as at a reload; connecting again`)
      }
    } catch (error) {
      if (signal.aborted) return
      if (!hasBegun || isForGood(error)) throw error
      const problem = messageOf(error)
      if (problem !== lastProblem) tell(`${problem}; connecting again`)
      lastProblem = problem
    }
    await sleep(clock, pauseMs, signal)
    pauseMs = Math.min(2 * pauseMs, tailReopenMsMax)
  }
}

async function readEvents(
  parts: AsyncIterable<string>,
  reader: EventStreamReader,
  { signal, onEvent }: FollowTailOptions,
): Promise<void> {
  for await (const text of parts) {
    if (signal.aborted) return
    for (const event of reader.take(text)) onEvent(event)
  }
}

/** Another program does not become the server. Too many tails, and a server or proxy that cannot serve at the moment, do not last. */
function isForGood(error: unknown): boolean {
  if (error instanceof ForeignResponseError) return true
  if (!(error instanceof CallRefusedError)) return false
  const { status } = error.response
  return status < 500 && status !== 429
}
