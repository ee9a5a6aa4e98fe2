/**
 * Replays dead letters at once, as an operator asks for it: each is pushed as a new update and removed as a dead letter in the
 * same synced group (replay-slice.ts). The bot's wanted types do not matter, but the limits of its queue do. The first dead
 * letter that does not fit ends the replay.
 */
import { PostboteError } from '../../kit/errors.ts'
import { deadLettersPerRead } from '../../kit/limits.ts'
import type { UpdateFilter } from '../../queue/kept/look-back.ts'
import type { ReplayResult } from '../../bots/bot-service.ts'
import { renumberIfDue } from '../../bots/push-batch.ts'
import { type ReplayedUpdate, type ReplayTarget, replaySlice } from './replay-slice.ts'

/**
 * Replays one dead letter.
 *
 * @returns its new id
 * @throws UNKNOWN_DEAD_LETTER, or the refusal of the push
 */
export async function replayDeadLetter(target: ReplayTarget, updateId: number): Promise<number> {
  const { deadLetters } = target.queue.updates
  const isThere = (await deadLetters.get(updateId)) !== undefined
  const { replayed } = isThere ? await replay(target, {}, [updateId]) : { replayed: [] }
  const [one] = replayed
  if (one === undefined) throw new PostboteError('UNKNOWN_DEAD_LETTER', { detail: `${updateId}` })
  return one.newUpdateId
}

/**
 * Replays the current dead letters that are selected, oldest first.
 *
 * @throws the refusal of the first one, if none was replayed
 */
export async function replayDeadLetters(
  target: ReplayTarget,
  filter: UpdateFilter,
): Promise<ReplayResult> {
  return replay(target, filter, await target.queue.updates.deadLetters.ids())
}

/** A replayed update may become a dead letter again, with a higher id than these. */
async function replay(
  target: ReplayTarget,
  filter: UpdateFilter,
  ids: readonly number[],
): Promise<ReplayResult> {
  const replayed: ReplayedUpdate[] = []
  let stopped: ReplayResult['stopped']
  const end = (ids.at(-1) ?? 0) + 1
  // From dead letter to dead letter: there may be millions of other updates between two of them.
  const firstFrom = (id: number): number => ids.find((each) => each >= id) ?? end
  for (let from = firstFrom(0); from < end && stopped === undefined; ) {
    await renumberIfDue(target.queue)
    const range = {
      filter: { ...filter, state: 'dead' },
      from,
      end,
      limit: deadLettersPerRead,
    } as const
    try {
      const slice = await replaySlice(target, 'dead letters', range)
      replayed.push(...slice.replayed)
      stopped = slice.refused
      from = firstFrom(slice.next)
    } catch (error) {
      if (!(error instanceof PostboteError)) throw error
      stopped = { updateId: from, error }
    }
  }
  if (stopped !== undefined && replayed.length === 0) throw stopped.error
  return { replayed, stopped }
}
