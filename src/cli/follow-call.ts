/** What `postbote tail` and `postbote events` have in common: they print what a call sends, as long as somebody reads it. */
import { type TSchema, Type } from 'typebox'
import { waitingClock } from '../kit/clock.ts'
import type { Operation } from '../api/operation.ts'
import type { InputOf } from '../api/target-of.ts'
import type { CommandCall } from './commands/command-call.ts'
import { printJsonLine, tell } from './output/print-result.ts'
import { jsonOption } from './output/view.ts'
import type { StreamedEvent } from './event-stream-reader.ts'
import { followTail, type FollowTailOptions } from './follow-tail.ts'
import { privateApiOf } from './remote/private-api-of.ts'
import { fitsSchema, ForeignResponseError } from './remote/remote-api.ts'
import { tailSilenceMs } from '../api/limits.ts'

/** A tail that sends nothing for this long, not even a comment, is opened again. Chosen: three comments are missing. */
const tailIdleMsMax = 3 * tailSilenceMs

interface Followed<Row extends Operation> extends Pick<FollowTailOptions, 'name' | 'afterGap'> {
  readonly operation: Row
  /** Returns what is sent. See `FollowTailOptions.open`. */
  inputAfter(lastId: string | undefined): InputOf<Row>
  /** Returns the fields that each event of this name has; undefined for one that a later server has. */
  dataOf(name: string): TSchema | undefined
  /** Returns whether an event is printed. Default: each is. */
  isWanted?(event: StreamedEvent): boolean
  /** Return an event on a line, for programs and for people. */
  json(event: StreamedEvent): string
  line(event: StreamedEvent): string
}

export async function followCall<Row extends Operation>(
  call: CommandCall,
  followed: Followed<Row>,
): Promise<void> {
  const isJson = call.has(jsonOption)
  await untilInterrupted((signal) =>
    followTail({
      ...followed,
      clock: waitingClock,
      signal,
      async open(lastId) {
        // Each time, because the server may come back at another address, or another program may have taken this one.
        const api = await privateApiOf(call)
        const patience = { idleMs: tailIdleMsMax, signal }
        return api.follow(followed.operation, followed.inputAfter(lastId), patience)
      },
      onEvent(event) {
        if (!isWhole(event, followed.dataOf(event.name))) throw new ForeignResponseError()
        if (followed.isWanted?.(event) === false) return
        if (isJson) printJsonLine(followed.json(event))
        else process.stdout.write(`${followed.line(event)}\n`)
      },
      tell,
    }),
  )
}

function isWhole({ data }: StreamedEvent, fields: TSchema = Type.Object({})): boolean {
  try {
    return fitsSchema(fields, JSON.parse(data))
  } catch {
    return false
  }
}

/** Runs work that lasts until SIGINT (Ctrl+C), or until nobody reads its output any more, such as after the end of a pipe. */
async function untilInterrupted(work: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const ending = new AbortController()
  const end = (): void => ending.abort()
  process.once('SIGINT', end)
  process.stdout.once('error', end)
  try {
    await work(ending.signal)
  } finally {
    process.off('SIGINT', end)
    process.stdout.off('error', end)
  }
}
