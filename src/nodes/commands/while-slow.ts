/** Repeats a step of the start of a server while its database is there, and too slow to respond to a statement in time. */
import { sleep } from '../../kit/clock.ts'
import { messageOf } from '../../kit/errors.ts'
import type { Surroundings } from '../../kit/surroundings.ts'

/** A slow database is asked again after this pause. Chosen: as one that was away when the server started. */
export const slowAskAgainMs = 1_000
/** No step begins again after this time. Chosen: as long as a worker may take to start, so the load that slows both may pass. */
export const slowStartMsMax = 30_000

/** @throws the error of the step, at once if it is no silence of a database */
export async function whileSlow<Result>(
  { clock, log }: Pick<Surroundings, 'clock' | 'log'>,
  step: () => Promise<Result>,
): Promise<Result> {
  const untilMs = clock.monotonicMs() + slowStartMsMax
  for (;;) {
    try {
      return await step()
    } catch (error) {
      if (!isSilence(error) || clock.monotonicMs() >= untilMs) throw error
      log.warn({ error: messageOf(error) }, 'a database is slow: this start asks it again')
    }
    await sleep(clock, slowAskAgainMs)
  }
}

/** How `pg` reports a statement without a response in time. It has no code. */
const silenceText = 'Query read timeout'

/** Returns whether a database that is there did not respond to a statement in time, as one on a busy machine. */
function isSilence(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.some(isSilence)
  return error instanceof Error && (error.message === silenceText || isSilence(error.cause))
}
