/**
 * Stores the updates that a poll has brought. They and the offset after them are written in one group, so an interruption
 * leaves all of them stored or none, and no update is stored twice.
 */
import type { Counters } from '../../kit/surroundings.ts'
import { nextTurn } from '../../kit/clock.ts'
import { PostboteError } from '../../kit/errors.ts'
import { kib } from '../../kit/limits.ts'
import { isInMask } from '../../kit/update-types.ts'
import { assertTelegramFields } from '../../queue/check/telegram-fields.ts'
import { expiresAtS, lifeS } from '../../queue/check/time-to-live.ts'
import { relayBatchMax } from './limits.ts'
import type { OriginUpdate, RefusedUpdate } from './origin.ts'
import type { BotRecord, StoredRelay } from '../../shard/records/bot-record.ts'
import type { PushOperation } from '../../shard/operations.ts'
import type { Bot } from '../../bots/bot.ts'
import { countRefusal } from '../../bots/push-receipt.ts'

/** Where updates are relayed to. */
export interface RelayTarget {
  readonly bot: Bot
  readonly counters: Counters
  /** Throws if the bot accepts no updates now, or if another has its shard. */
  readonly assertAccepting: () => void
}

export interface RelayedBatch {
  /** How many were stored. */
  readonly pushed: number
  /** Whether all were before the offset of the poll. */
  readonly isRepeated: boolean
  readonly refused: readonly RefusedUpdate[]
  /** Why the rest was not stored. The next poll asks for it again. */
  readonly stopped: PostboteError | undefined
}

/**
 * After a week without updates, an origin may go on with any id, even a lower one. [ref] An offset that was stored this long
 * ago is therefore not sent; it only keeps the last batch from being stored again. It is a day less, because the clocks
 * differ.
 */
const offsetLifeMs = 6 * 86_400_000

/** Returns the offset of the next poll; undefined if the ids may have begun anew since. */
export function pollOffset({ offset, storedAtMs }: StoredRelay, nowMs: number): number | undefined {
  return nowMs - (storedAtMs ?? nowMs) < offsetLifeMs ? offset : undefined
}

/** Whether two records are of the same relay with the same offset. */
function isSamePlace(a: StoredRelay, b: StoredRelay | undefined): boolean {
  return a.setAtMs === b?.setAtMs && a.offset === b.offset && a.from === b.from
}

/**
 * Stores updates.
 *
 * @param polled - the relay when the poll began
 * @param updates - in ascending order of their ids
 * @param keep - makes refused updates durable, before they are skipped
 * @returns undefined if the relay has changed since the poll began
 * @throws the errors of the commit
 */
export async function storeRelayed(
  target: RelayTarget,
  { polled, updates }: { readonly polled: StoredRelay; readonly updates: readonly OriginUpdate[] },
  keep: (refused: readonly RefusedUpdate[]) => Promise<void>,
): Promise<RelayedBatch | undefined> {
  const { bot, counters } = target
  return bot.recordChanges.run(async () => {
    const { relay } = bot.record
    if (bot.isRemoved || relay === undefined || !isSamePlace(polled, relay)) return undefined
    const from = pollOffset(relay, bot.main.clock.nowMs())
    const fresh = updates.filter(({ updateId }) => updateId >= (from ?? 0))
    const checked = await checkAll(fresh, bot)
    const unstorable = checked.flatMap((each) => ('reason' in each ? [each] : []))
    if (unstorable.length > 0) await keep(unstorable)
    // Nothing waits between here and the commit, so ids are written in order.
    const { pushes, filtered, next, stopped } = pushAll(target, { relay, from }, checked)
    if (next !== undefined && next !== from) await commit(bot, pushes, { ...relay, offset: next })
    const refused = unstorable.filter(({ updateId }) => next !== undefined && updateId < next)
    counters.add('updates_pushed', pushes.length)
    counters.add('updates_relayed', pushes.length)
    if (filtered > 0) counters.add('updates_filtered', filtered)
    if (refused.length > 0) counters.add('relay_updates_refused', refused.length)
    if (stopped !== undefined) countRefusal(counters, stopped.code)
    return { pushed: pushes.length, isRepeated: fresh.length === 0, refused, stopped }
  })
}

async function commit(
  bot: Bot,
  pushes: readonly PushOperation[],
  moved: StoredRelay,
): Promise<void> {
  const { clock, shard } = bot.main
  const record: BotRecord = { ...bot.record, relay: { ...moved, storedAtMs: clock.nowMs() } }
  await shard.commit([...pushes, { kind: 'bot', queue: bot.botId, record }], { waited: true })
  bot.replaceRecord(record)
}

interface PushedAll {
  readonly pushes: readonly PushOperation[]
  readonly filtered: number
  /** The offset after what was done. */
  readonly next: number | undefined
  readonly stopped: PostboteError | undefined
}

function pushAll(
  { bot, assertAccepting }: RelayTarget,
  { relay, from }: { readonly relay: StoredRelay; readonly from: number | undefined },
  checked: readonly (CheckedUpdate | RefusedUpdate)[],
): PushedAll {
  const { allowedTypes } = bot.main
  const pushes: PushOperation[] = []
  let filtered = 0
  let next = from
  let stopped: PostboteError | undefined
  try {
    assertAccepting()
    for (const each of checked) {
      const { updateId } = each
      // An origin may send one twice in an answer.
      if (updateId < (next ?? 0)) continue
      if (!('reason' in each) && (from !== undefined || !isOfLastBatch(relay, updateId))) {
        if (isInMask(allowedTypes, each.typeNumber)) pushes.push(pushOf(bot, each))
        else filtered += 1
      }
      next = updateId + 1
    }
  } catch (error) {
    if (!(error instanceof PostboteError)) throw error
    stopped = error
  }
  return { pushes, filtered, next, stopped }
}

/** If the server ended after the last batch, the origin was not told of it, and sends it again. */
function isOfLastBatch({ offset = 0 }: StoredRelay, updateId: number): boolean {
  return updateId < offset && updateId >= offset - relayBatchMax
}

interface CheckedUpdate {
  readonly updateId: number
  readonly typeNumber: number
  readonly orderingKey: string
  readonly text: Buffer
}

/** After updates with this many bytes, other work has its turn: the fields of all may be checked. Chosen: a few milliseconds. */
const relayCheckBytesPerTurn = 256 * kib

async function checkAll(
  fresh: readonly OriginUpdate[],
  bot: Bot,
): Promise<readonly (CheckedUpdate | RefusedUpdate)[]> {
  const checked: (CheckedUpdate | RefusedUpdate)[] = []
  let bytes = 0
  for (const update of fresh) {
    bytes += update.raw.length
    if (bytes > relayCheckBytesPerTurn) {
      await nextTurn(bot.main.clock)
      bytes = update.raw.length
    }
    checked.push(checkedOf(update, bot))
  }
  return checked
}

function checkedOf(of: OriginUpdate, { main, record }: Bot): CheckedUpdate | RefusedUpdate {
  const { updateId, update, verdict, raw, isCut = false } = of
  try {
    if (isCut) throw tooLarge(`more than ${raw.length}`)
    if (update === undefined || verdict === undefined) {
      return { ...of, reason: 'expected exactly one type with its value' }
    }
    if ('reason' in verdict) return { ...of, reason: verdict.reason }
    const { typeNumber, orderingKey } = verdict
    // Between the braces is the one member.
    const text = update.subarray(1, -1)
    if (main.updates.isTooLarge(text.length)) throw tooLarge(`${text.length}`)
    if (record.isValidated === true) assertTelegramFields(typeNumber, text)
    return { updateId, typeNumber, orderingKey, text }
  } catch (error) {
    if (error instanceof PostboteError) return { ...of, reason: error.message }
    throw error
  }
}

function tooLarge(bytes: string): PostboteError {
  return new PostboteError('UPDATE_TOO_LARGE', { detail: `got ${bytes} bytes` })
}

function pushOf({ main, record }: Bot, update: CheckedUpdate): PushOperation {
  const { typeNumber, orderingKey, text } = update
  const ttlS = lifeS(typeNumber, undefined, record.ttlS)
  return main.updates.push({
    typeNumber,
    orderingKey,
    expiresAtS: expiresAtS(typeNumber, ttlS, main.clock.nowMs()),
    text,
  })
}
