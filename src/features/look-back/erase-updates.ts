/**
 * Erases all payloads of an ordering key or of a person, in both queues of a bot: pending, kept and dead updates, attempts,
 * and what the files of the shard still have of them.
 *
 *     rounds     pending updates, dead letters, kept ones; again until two rounds find nothing, because an update may leave the
 *                queue meanwhile, or be replayed into it
 *     in flight  an attempt that has begun ends first
 *     attempts   of these updates, and responses whose update is not there any more: nobody can tell whose they are
 *     files      damaged records and their copies; then the store takes what was deleted out of its files
 *
 * Each step is durable before the next one, and finds what is left: so an erasure that was interrupted is repeated.
 */
import { sleep } from '../../kit/clock.ts'
import { PostboteError } from '../../kit/errors.ts'
import { type Erasing, eraseKept } from '../../queue/kept/erase-kept.ts'
import type { LookPayer } from '../../queue/kept/look-payer.ts'
import type { PendingUpdate } from '../../delivery/delivery-source.ts'
import { webhookConnectTimeoutMs, webhookResponseTimeoutMs } from '../../delivery/limits.ts'
import type { BotQueue } from '../../bots/bot-queue.ts'

/** What was erased. */
export interface Erased {
  readonly pending: number
  readonly kept: number
  readonly dead: number
  readonly attempts: number
  /** How many of `pending`, `kept` and `dead` there were of each type, by its number. */
  readonly types: ReadonlyMap<number, number>
  /** Damaged records. */
  readonly unreadable: number
  /** Copies of damaged files, as paths relative to the directory of the shards. */
  readonly files: readonly string[]
}

/** So that pushes with the same key, if they go on, do not keep the call busy forever. */
const eraseRoundsMax = 6
/** One round alone misses what is replayed after its look at the pending updates, and before that at the others. */
const quietRounds = 2
/** An attempt ends within this time. Chosen: its own bounds, and 5 s for a busy worker. */
const attemptEndsMs = webhookConnectTimeoutMs + webhookResponseTimeoutMs + 5_000
const inFlightPollMs = 50

type Counts = { -readonly [Name in 'pending' | 'kept' | 'dead' | 'attempts']: Erased[Name] }

/**
 * @param queues - of one bot
 * @param isMeant - tells which updates are
 * @param payer - pays for each read
 * @throws UPDATE_IN_DELIVERY if an attempt does not end, STORE_UNAVAILABLE, OUTCOME_UNKNOWN, TOO_MANY_REQUESTS if too much of the
 *   payer waits, or nobody waits for the result any more
 */
export async function eraseUpdates(
  queues: readonly BotQueue[],
  isMeant: Erasing['isMeant'],
  payer?: LookPayer,
): Promise<Erased> {
  const counts: Counts = { pending: 0, kept: 0, dead: 0, attempts: 0 }
  const types = new Map<number, number>()
  const counted: Erasing['counted'] = (updates) => {
    for (const { typeNumber } of updates) types.set(typeNumber, (types.get(typeNumber) ?? 0) + 1)
  }
  for (const queue of queues) await eraseIn(queue, { isMeant, counted, counts, payer })
  const [first] = queues
  const ids = queues.map(({ id }) => id)
  const unreadable = (await first?.shard.eraseDamaged(ids)) ?? 0
  const files = (await first?.shard.purge(ids)) ?? []
  return { ...counts, types, unreadable, files }
}

async function eraseIn(
  queue: BotQueue,
  { counts, ...wanted }: Omit<Erasing, 'noted'> & { readonly counts: Counts },
): Promise<void> {
  const { id, shard, updates, webhook } = queue
  /** Of those that were tried. */
  const erasedIds = new Set<number>()
  const noted = (updateId: number): void => {
    if (webhook.hasAttempt(updateId)) erasedIds.add(updateId)
  }
  const inFlight: PendingUpdate[] = []
  let quiet = 0
  for (let round = 0; round < eraseRoundsMax && quiet < quietRounds; round++) {
    const erasing = { ...wanted, noted }
    // Pending ones first: those that left the queue before are then found behind it.
    const pending = await updates.erase(erasing)
    inFlight.push(...pending.inFlight)
    await ended(queue, pending.inFlight)
    webhook.retry([...pending.keys])
    const dead = await updates.deadLetters.erase(erasing)
    const kept = await eraseKept({ id, shard }, updates.floor, erasing)
    counts.dead += dead
    counts.kept += kept
    counts.pending += pending.count
    quiet = dead + kept + pending.count === 0 ? quiet + 1 : 0
  }
  for (const { updateId } of inFlight) erasedIds.add(updateId)
  counts.attempts += await forgetAttempts(queue, erasedIds)
}

/** Resolves when no attempt for these updates is in progress. */
async function ended({ clock, updates }: BotQueue, left: readonly PendingUpdate[]): Promise<void> {
  const endMs = clock.monotonicMs() + attemptEndsMs
  while (left.some((update) => updates.isInFlight(update))) {
    if (clock.monotonicMs() > endMs) throw new PostboteError('UPDATE_IN_DELIVERY')
    await sleep(clock, inFlightPollMs)
  }
}

async function forgetAttempts(
  { updates, webhook }: BotQueue,
  erasedIds: ReadonlySet<number>,
): Promise<number> {
  // An attempt that is made during these reads is that of an update which is there.
  const seen = new Set<number>()
  const gone = new Set<number>()
  for (const { updateId, responseBody, responseHeaders } of webhook.attempts(Infinity)) {
    if ((responseBody ?? responseHeaders) === undefined || seen.has(updateId)) continue
    seen.add(updateId)
    if ((await updates.lookBack.get(updateId)) === undefined) gone.add(updateId)
  }
  return webhook.forgetAttemptsOf(({ updateId }) => {
    if (erasedIds.has(updateId)) return 'all'
    return gone.has(updateId) ? 'answer' : 'nothing'
  })
}
