/**
 * Pushes updates of a queue again which have left it. All replays are made of slices: those of a job, and those of a call that
 * waits for its replay, of one update or of all dead letters that it selects. What a slice pushes, the dead letters that it takes
 * and what its caller commits with them are in one synced group, so whoever is interrupted has done all of a slice or nothing.
 */
import type { Counters } from '../../kit/surroundings.ts'
import { type ErrorCode, PostboteError } from '../../kit/errors.ts'
import { deadLettersPerRead } from '../../kit/limits.ts'
import { isInMask } from '../../kit/update-types.ts'
import type { FoundUpdate, UpdateFilter } from '../../queue/kept/look-back.ts'
import { type LookPayer, withoutTurns } from '../../queue/kept/look-payer.ts'
import { expiresAtS, lifeS } from '../../queue/check/time-to-live.ts'
import type { Operation, PushOperation } from '../../shard/operations.ts'
import { updateIdEnd } from '../../shard/records/record-keys.ts'
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

/** Which updates are replayed. */
export interface ReplayRange {
  readonly filter: UpdateFilter
  /** The first id. */
  readonly from: number
  /** The first id after the range. */
  readonly end: number
}

export interface SliceRange extends ReplayRange {
  /** How many updates are pushed at most. */
  readonly limit: number
}

export interface ReplayedSlice {
  readonly replayed: readonly ReplayedUpdate[]
  /** Skipped, because the bot does not want their types. */
  readonly filtered: number
  /** Skipped by a job, because they are larger than the server accepts now. */
  readonly tooLarge: number
  /** Where the next slice begins. */
  readonly next: number
  /** The first update that was refused, with the reason; no later one was looked at. */
  readonly refused: { readonly updateId: number; readonly error: PostboteError } | undefined
}

/** The outcome of a replay that a call waits for. */
export interface ReplayResult extends Pick<ReplayedSlice, 'replayed' | 'filtered'> {
  /** The first update that was refused, or the first id that was not looked at, with the reason. */
  readonly stopped: ReplayedSlice['refused']
}

/** What differs between a job and a call that waits. */
interface PushRules {
  /** It skips what is larger than the server accepts now, and leaves a part of the queue to producers. */
  readonly isJob: boolean
  /** The types that the bot wants do not matter. */
  readonly takesAllTypes: boolean
}

/**
 * Replays the next updates of a range for a job.
 *
 * @param alongside - returns what is committed in the same group
 * @throws the errors of the reads and of the commit
 */
export function replaySlice(
  target: ReplayTarget,
  range: SliceRange,
  alongside: (slice: ReplayedSlice) => readonly Operation[],
): Promise<ReplayedSlice> {
  return pushSlice(target, { isJob: true, takesAllTypes: false }, range, alongside)
}

/**
 * Replays a range at once, up to the first update that is refused.
 *
 * @throws the refusal of the first one, if none was replayed
 */
export async function replayAtOnce(
  target: ReplayTarget,
  { filter, from: first, end }: ReplayRange,
): Promise<ReplayResult> {
  const isOfDead = filter.state === 'dead'
  // Whoever asks for dead letters has decided that the bot wants them.
  const rules = { isJob: false, takesAllTypes: isOfDead }
  const replayed: ReplayedUpdate[] = []
  let filtered = 0
  let stopped: ReplayResult['stopped']
  for (let from = first; from < end && stopped === undefined; ) {
    // Dead letters outlive a numbering, and what else is kept does not.
    if (isOfDead) await target.queue.updates.renumberIfDue()
    try {
      const range = { filter, from, end, limit: deadLettersPerRead }
      const slice = await pushSlice(target, rules, range, () => [])
      replayed.push(...slice.replayed)
      filtered += slice.filtered
      stopped = slice.refused
      from = slice.next
    } catch (error) {
      if (!(error instanceof PostboteError)) throw error
      stopped = { updateId: from, error }
    }
  }
  if (stopped !== undefined && replayed.length === 0) throw stopped.error
  return { replayed, filtered, stopped }
}

/**
 * Replays one update at once.
 *
 * @returns its new id, or that the bot does not want its type
 * @throws UNKNOWN_UPDATE, UPDATE_PENDING, or the refusal of the push
 */
export async function replayOne(
  target: ReplayTarget,
  updateId: number,
): Promise<number | 'filtered'> {
  const found = await target.queue.updates.lookBack.get(updateId)
  if (found?.state === 'pending') throw new PostboteError('UPDATE_PENDING')
  const range = rangeOf(updateId, { leftByMs: Infinity })
  const { replayed, filtered } = await replayAtOnce(target, range)
  if (filtered > 0) return 'filtered'
  return newIdOf(replayed[0], { code: 'UNKNOWN_UPDATE', updateId })
}

/**
 * Replays one dead letter at once. Its id may also be that of another update, in a later numbering.
 *
 * @returns its new id
 * @throws UNKNOWN_DEAD_LETTER, or the refusal of the push
 */
export async function replayOneDead(target: ReplayTarget, updateId: number): Promise<number> {
  const { replayed } = await replayAtOnce(target, rangeOf(updateId, { state: 'dead' }))
  return newIdOf(replayed[0], { code: 'UNKNOWN_DEAD_LETTER', updateId })
}

function rangeOf(updateId: number, filter: UpdateFilter): ReplayRange {
  return { filter, from: updateId, end: Math.min(updateId + 1, updateIdEnd) }
}

function newIdOf(
  replayed: ReplayedUpdate | undefined,
  unknown: { readonly code: ErrorCode; readonly updateId: number },
): number {
  if (replayed !== undefined) return replayed.newUpdateId
  throw new PostboteError(unknown.code, { detail: `${unknown.updateId}` })
}

async function pushSlice(
  target: ReplayTarget,
  rules: PushRules,
  { filter, from, end, limit }: SliceRange,
  alongside: (slice: ReplayedSlice) => readonly Operation[],
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

interface PushedSlice {
  readonly slice: ReplayedSlice
  readonly pushes: readonly PushOperation[]
  /** The dead letters among them. */
  readonly dead: readonly number[]
}

function pushAll(
  target: ReplayTarget,
  rules: PushRules,
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
  rules: PushRules,
  { updateId, state, typeNumber, orderingKey, traceparent, text }: FoundUpdate,
): PushOperation | 'gone' | 'filtered' | 'tooLarge' {
  const { updates, allowedTypes, clock } = queue
  // A dead letter may have been removed during the read.
  if (state === 'dead' && !updates.deadLetters.has(updateId)) return 'gone'
  if (!rules.takesAllTypes && !isInMask(allowedTypes, typeNumber)) return 'filtered'
  assertAccepting()
  if (rules.isJob && updates.isTooLarge(text.length)) return 'tooLarge'
  if (rules.isJob) updates.assertRoomForReplay(text.length)
  const ttlS = lifeS(typeNumber, undefined, queue.bot.record.ttlS)
  const endsAtS = expiresAtS(typeNumber, ttlS, clock.nowMs())
  return updates.push({ typeNumber, orderingKey, expiresAtS: endsAtS, traceparent, text })
}
