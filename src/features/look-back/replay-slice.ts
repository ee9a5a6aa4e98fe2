/**
 * Pushes updates of a queue again which have left it. All replays are made of slices: those of a job, that of one update, and
 * those of dead letters. What a slice pushes, the dead letters that it takes and what its caller commits with them are in one
 * synced group, so whoever is interrupted has done all of a slice or nothing.
 */
import type { Counters } from '../../kit/counters.ts'
import { PostboteError } from '../../kit/errors.ts'
import { isInMask } from '../../kit/update-types.ts'
import type { FoundUpdate, UpdateFilter } from '../../queue/kept/look-back.ts'
import { type LookPayer, withoutTurns } from '../../queue/kept/look-payer.ts'
import { expiresAtS, lifeS } from '../../queue/check/time-to-live.ts'
import type { Operation, PushOperation } from '../../shard/operations.ts'
import type { BotQueue } from '../../bots/bot-queue.ts'

/** An update that was pushed again as another one. */
export interface ReplayedUpdate {
  readonly updateId: number
  readonly newUpdateId: number
}

/** Where updates are replayed. */
export interface ReplayTarget {
  readonly queue: BotQueue
  readonly counters: Counters
  /** Throws if the bot accepts no updates now. */
  readonly assertAccepting: () => void
  /** Who pays for the reads, if a call waits for the replay. */
  readonly payer?: LookPayer | undefined
}

/** Who asks: each has rules of its own. */
export type ReplayRules = 'job' | 'one' | 'dead letters'

export interface SliceRange {
  readonly filter: UpdateFilter
  /** The first id. */
  readonly from: number
  /** The first id after the range. */
  readonly end: number
  /** How many updates are pushed at most. */
  readonly limit: number
}

export interface ReplayedSlice {
  readonly replayed: readonly ReplayedUpdate[]
  /** Skipped, because the bot does not want their types. The operator of dead letters has decided that it does. */
  readonly filtered: number
  /** Skipped by a job, because they are larger than the server accepts now. */
  readonly tooLarge: number
  /** Where the next slice begins. */
  readonly next: number
  /** The first update that was refused, with the reason; no later one was looked at. */
  readonly refused: { readonly updateId: number; readonly error: PostboteError } | undefined
}

/**
 * Replays the next updates of a range.
 *
 * @param alongside - returns what is committed in the same group
 * @throws the errors of the reads and of the commit
 */
export async function replaySlice(
  target: ReplayTarget,
  rules: ReplayRules,
  { filter, from, end, limit }: SliceRange,
  alongside: (slice: ReplayedSlice) => readonly Operation[] = () => [],
): Promise<ReplayedSlice> {
  const { queue, counters, payer } = target
  const { lookBack, deadLetters } = queue.updates
  await payer?.turn()
  // What is held here is not held while its payer waits.
  const inside = withoutTurns(payer)
  // Otherwise copies of what is erased meanwhile would be pushed after that.
  return queue.shard.keptChanges.run(async () => {
    const range = { after: from - 1, before: end, limit }
    const { updates, after } = await lookBack.find(filter, range, inside)
    // Then it is known which of them are still there.
    if (updates.some(({ state }) => state === 'dead')) await deadLetters.removeOld()
    // Nothing waits between here and the commit, so each update is pushed once and ids are written in order.
    const next = after === undefined ? end : after + 1
    const { slice, pushes, dead } = pushAll(target, rules, { updates, next })
    const operations = [
      ...pushes,
      ...(dead.length === 0 ? [] : [deadLetters.take(dead)]),
      ...alongside(slice),
    ]
    if (operations.length > 0) await queue.shard.commit(operations, { waited: true })
    counters.add('updates_pushed', pushes.length)
    if (slice.filtered > 0) counters.add('updates_filtered', slice.filtered)
    if (dead.length > 0) counters.add('dead_letters_replayed', dead.length)
    return slice
  })
}

/**
 * Replays one update.
 *
 * @returns its new id
 * @throws UNKNOWN_UPDATE, UPDATE_PENDING, the refusal of the push, or the errors of `replaySlice`
 */
export async function replayOne(
  target: ReplayTarget,
  updateId: number,
): Promise<number | 'filtered'> {
  const found = await target.queue.updates.lookBack.get(updateId)
  if (found?.state === 'pending') throw new PostboteError('UPDATE_PENDING')
  if (found === undefined) throw new PostboteError('UNKNOWN_UPDATE', { detail: `${updateId}` })
  const range = { filter: { leftByMs: Infinity }, from: updateId, end: updateId + 1, limit: 1 }
  const { replayed, filtered, refused } = await replaySlice(target, 'one', range)
  if (refused !== undefined) throw refused.error
  if (filtered > 0) return 'filtered'
  const [one] = replayed
  if (one === undefined) throw new PostboteError('UNKNOWN_UPDATE', { detail: `${updateId}` })
  return one.newUpdateId
}

interface PushedSlice {
  readonly slice: ReplayedSlice
  readonly pushes: readonly PushOperation[]
  /** The dead letters among them. */
  readonly dead: readonly number[]
}

function pushAll(
  target: ReplayTarget,
  rules: ReplayRules,
  found: { readonly updates: readonly FoundUpdate[]; readonly next: number },
): PushedSlice {
  const pushes: PushOperation[] = []
  const replayed: ReplayedUpdate[] = []
  const dead: number[] = []
  const skipped = { gone: 0, filtered: 0, tooLarge: 0 }
  let refused: ReplayedSlice['refused']
  for (const update of found.updates) {
    const { updateId, state } = update
    try {
      const push = pushOf(target, rules, update)
      if (typeof push === 'string') {
        skipped[push] += 1
        continue
      }
      pushes.push(push)
      replayed.push({ updateId, newUpdateId: push.updateId })
      if (state === 'dead') dead.push(updateId)
    } catch (error) {
      if (!(error instanceof PostboteError)) throw error
      refused = { updateId, error }
      break
    }
  }
  const { filtered, tooLarge } = skipped
  const next = refused?.updateId ?? found.next
  return { slice: { replayed, filtered, tooLarge, next, refused }, pushes, dead }
}

/** Returns the push of an update, or why it is skipped. Throws the refusal of the push. */
function pushOf(
  { queue, assertAccepting }: ReplayTarget,
  rules: ReplayRules,
  { updateId, state, typeNumber, orderingKey, traceparent, text }: FoundUpdate,
): PushOperation | 'gone' | 'filtered' | 'tooLarge' {
  const { updates, allowedTypes, clock } = queue
  // A dead letter may have been removed during the read.
  if (state === 'dead' && !updates.deadLetters.has(updateId)) return 'gone'
  if (rules !== 'dead letters' && !isInMask(allowedTypes, typeNumber)) return 'filtered'
  assertAccepting()
  if (rules === 'job' && updates.isTooLarge(text.length)) return 'tooLarge'
  if (rules === 'job') updates.assertRoomForReplay(text.length)
  const ttlS = lifeS(typeNumber, undefined, queue.bot.record.ttlS)
  const endsAtS = expiresAtS(typeNumber, ttlS, clock.nowMs())
  return updates.push({ typeNumber, orderingKey, expiresAtS: endsAtS, traceparent, text })
}
