/** What `postbote tail` and `postbote events` have in common: they print what a call sends, as long as somebody reads it. */
import { waitingClock } from '../../clock.ts'
import type { Operation } from '../../operations/operation.ts'
import type { InputOf } from '../../operations/target-of.ts'
import type { CommandCall } from '../commands/command-call.ts'
import { jsonOption, printJsonLine, tell } from '../output/print-result.ts'
import type { StreamedEvent } from './event-stream-reader.ts'
import { followTail, type FollowTailOptions } from './follow-tail.ts'
import { privateApiOf } from './private-api-of.ts'
import { tailSilenceMs } from '../../private-api/limits.ts'

/** A tail that sends nothing for this long, not even a comment, is opened again. Chosen: three comments are missing. */
const tailIdleMsMax = 3 * tailSilenceMs

interface Followed<Row extends Operation> extends Pick<FollowTailOptions, 'name' | 'afterGap'> {
  readonly operation: Row
  /** Returns what is sent. See `FollowTailOptions.open`. */
  inputAfter(lastId: string | undefined): InputOf<Row>
  /** Return an event on a line, for programs and for people. */
  json(event: StreamedEvent): string
  line(event: StreamedEvent): string
}

export async function followCall<Row extends Operation>(
  call: CommandCall,
  followed: Followed<Row>,
): Promise<void> {
  const isJson = call.has(jsonOption)
  const api = await privateApiOf(call)
  await untilInterrupted((signal) =>
    followTail({
      ...followed,
      clock: waitingClock,
      signal,
      open: (lastId) => {
        const patience = { idleMs: tailIdleMsMax, signal }
        return api.follow(followed.operation, followed.inputAfter(lastId), patience)
      },
      onEvent(event) {
        if (isJson) printJsonLine(followed.json(event))
        else process.stdout.write(`${followed.line(event)}\n`)
      },
      tell,
    }),
  )
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
