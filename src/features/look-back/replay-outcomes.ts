/**
 * What became of dead letters that were pushed again. The server tells it in pieces: the last attempts of the webhook, the
 * dead letters, and whether anything is pending. They are asked until every update has an outcome.
 */
import { type Clock, sleep } from '../../kit/clock.ts'
import type { deadLetterOperations } from './dead-letter-operations.ts'
import type { ResultOf } from '../../api/operation.ts'
import type { needs as bots } from '../bots/needs.ts'

/** `dead-letters replay --wait` asks this often, and gives up after the second. Chosen: an endpoint that works takes them sooner. */
const replayAskMs = 500
const replayWaitMs = 60_000

type Attempt = ResultOf<typeof bots.listAttempts>['attempts'][number]
type DeadLetter = ResultOf<typeof deadLetterOperations.listDeadLetters>['dead_letters'][number]

/** The answers of the server, as far as they are used. */
export interface QueueAnswers extends Pick<ResultOf<typeof bots.getBot>, 'pending' | 'mode'> {
  readonly attempts: readonly Pick<Attempt, 'update_id' | 'status' | 'error'>[]
  readonly deadLetters: readonly Pick<DeadLetter, 'update_id' | 'reason'>[]
}

/** `waits` and what the last attempt failed with, if there was one. */
export interface Outcome {
  readonly outcome: 'delivered' | 'confirmed' | 'dead letter' | 'waits'
  readonly detail: string | null
}

/**
 * Asks until every update is delivered, confirmed or a dead letter again, but not for longer than `replayWaitMs`.
 *
 * @param ids - the updates
 * @param ask - asks the server
 */
export async function replayOutcomes(
  ids: readonly number[],
  clock: Clock,
  ask: () => Promise<QueueAnswers>,
): Promise<ReadonlyMap<number, Outcome>> {
  const known = new Map<number, Outcome>()
  const untilMs = clock.monotonicMs() + replayWaitMs
  for (;;) {
    const answers = await ask()
    for (const id of ids) {
      // The list of attempts is short, so what it said before counts.
      if (known.get(id)?.outcome !== 'delivered')
        known.set(id, outcomeOf(id, answers, known.get(id)))
    }
    const isOver = ids.every((id) => known.get(id)?.outcome !== 'waits')
    if (isOver || clock.monotonicMs() >= untilMs) return known
    await sleep(clock, replayAskMs)
  }
}

function outcomeOf(id: number, answers: QueueAnswers, before: Outcome | undefined): Outcome {
  const letter = answers.deadLetters.find(({ update_id: each }) => each === id)
  if (letter !== undefined) return { outcome: 'dead letter', detail: letter.reason }
  // The newest attempt is the first.
  const attempt = answers.attempts.find(({ update_id: each }) => each === id)
  const status = attempt?.status ?? 0
  if (status >= 200 && status <= 299) return { outcome: 'delivered', detail: null }
  if (answers.pending === 0) {
    return { outcome: answers.mode === 'webhook' ? 'delivered' : 'confirmed', detail: null }
  }
  return { outcome: 'waits', detail: attempt?.error ?? before?.detail ?? null }
}
