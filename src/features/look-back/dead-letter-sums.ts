/**
 * Dead letters by why they are dead: a night of failures is a hundred thousand letters and five reasons. A shard is summed from
 * disk, queue by queue, as far as a bound, so the sums may be of a part; they say so.
 */
import type { Clock } from '../../kit/clock.ts'
import { withoutPrefix } from '../../delivery/attempts/failure.ts'
import { deadLetterLifeMs, deadLettersPerRead, mib } from '../../kit/limits.ts'
import { lookCostMs, type LookPayer } from '../../queue/kept/look-payer.ts'
import type { ShardLists } from '../../shard/shard-lists.ts'
import { botIdOf, type QueueId, updateIdEnd } from '../../shard/records/record-keys.ts'
import type { Shard } from '../../shard/shard.ts'
import type { StoredDeadLetter } from '../../shard/records/stored-records.ts'

/** Why letters are dead: what became of them, and the class of their last errors, `''` without one. */
export interface DeadReason {
  readonly reason: 'expired' | 'refused'
  readonly error: string
}

/** The letters of one queue in a group. */
export interface GroupQueue {
  readonly queue: QueueId
  readonly count: number
  /** The newest of them, as an example. */
  readonly updateId: number
  readonly newestMs: number
}

export interface DeadGroup extends DeadReason {
  readonly count: number
  readonly bots: number
  /** When the first and the last of them became dead letters: wall time in milliseconds. */
  readonly oldestMs: number
  readonly newestMs: number
  /** Those with the most, at most `groupQueuesMax`. */
  readonly queues: readonly GroupQueue[]
}

/** The sums of some letters. */
export interface DeadSums {
  /** Those with the most first, at most `deadGroupsMax`. */
  readonly groups: readonly DeadGroup[]
  /** How many letters were looked at. */
  readonly count: number
  /** Whether these are all. */
  readonly isComplete: boolean
}

/** So many groups are told. Chosen: more than errors have words; a person reads the first ten. */
export const deadGroupsMax = 50
/** A group names so many queues. Chosen: what a person acts on at once. */
export const groupQueuesMax = 100
/** A worker looks at so many letters for one answer: measured, half a second of its event loop, in turns of some milliseconds. */
export const lettersSummedMax = 50_000
/** Their texts are read with them, so that these bound a look, too. */
const summedBytesMax = 64 * mib
const summedBytesPerRead = 1 * mib

/** Returns the class of an error: without what differs between two letters that have died of the same. */
export function errorClassOf(lastError: string): string {
  return withoutPrefix(lastError)
    .replace(/ \([^()]{1,256}\)$/, '')
    .replaceAll(/\b\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?\b/g, '…')
    .replaceAll(/\d{4,}/g, '…')
}

/** Returns what tells whether a letter has died of something; a field that is absent does not matter. */
export function diedOf({
  reason,
  error,
}: {
  readonly reason?: DeadReason['reason'] | undefined
  readonly error?: string | undefined
}): ((letter: Pick<StoredDeadLetter, 'reason' | 'lastError'>) => boolean) | undefined {
  if (reason === undefined && error === undefined) return undefined
  return (letter) =>
    (reason === undefined || letter.reason === reason) &&
    (error === undefined || errorClassOf(letter.lastError) === error || letter.lastError === error)
}

interface OpenGroup extends DeadReason {
  count: number
  oldestMs: number
  newestMs: number
  readonly bots: Set<number>
  readonly queues: Map<QueueId, GroupQueue>
}

/** Sums letters one by one. */
export class DeadLetterSums {
  readonly #groups = new Map<string, OpenGroup>()
  #count = 0
  #isComplete = true

  add(queue: QueueId, { reason, lastError, leftAtMs, updateId }: StoredDeadLetter): void {
    this.#count += 1
    const error = errorClassOf(lastError)
    const key = `${reason} ${error}`
    let group = this.#groups.get(key)
    if (group === undefined) {
      // An endpoint that words each of its errors anew makes no more groups than a person reads.
      if (this.#groups.size >= deadGroupsMax) return this.endEarly()
      const times = { oldestMs: leftAtMs, newestMs: leftAtMs }
      group = { reason, error, count: 0, ...times, bots: new Set(), queues: new Map() }
      this.#groups.set(key, group)
    }
    group.count += 1
    group.oldestMs = Math.min(group.oldestMs, leftAtMs)
    group.newestMs = Math.max(group.newestMs, leftAtMs)
    group.bots.add(botIdOf(queue))
    const of = group.queues.get(queue)
    const isNewer = of === undefined || leftAtMs >= of.newestMs
    group.queues.set(queue, {
      queue,
      count: (of?.count ?? 0) + 1,
      updateId: isNewer ? updateId : of.updateId,
      newestMs: isNewer ? leftAtMs : of.newestMs,
    })
  }

  /** Others were not looked at. */
  endEarly(): void {
    this.#isComplete = false
  }

  sums(): DeadSums {
    const groups = Array.from(this.#groups.values(), ({ bots, queues, ...group }) => ({
      ...group,
      bots: bots.size,
      queues: mostFirst([...queues.values()]).slice(0, groupQueuesMax),
    }))
    return { groups: mostFirst(groups), count: this.#count, isComplete: this.#isComplete }
  }
}

/** Adds the sums of shards, whose bots are not the same. */
export function addDeadSums(all: readonly DeadSums[]): DeadSums {
  const groups = new Map<string, DeadGroup>()
  for (const group of all.flatMap((sums) => sums.groups)) {
    const key = `${group.reason} ${group.error}`
    const other = groups.get(key)
    groups.set(key, other === undefined ? group : added(other, group))
  }
  return {
    groups: mostFirst([...groups.values()]).slice(0, deadGroupsMax),
    count: all.reduce((sum, { count }) => sum + count, 0),
    isComplete: all.every(({ isComplete }) => isComplete) && groups.size <= deadGroupsMax,
  }
}

function added(a: DeadGroup, b: DeadGroup): DeadGroup {
  return {
    ...a,
    count: a.count + b.count,
    bots: a.bots + b.bots,
    oldestMs: Math.min(a.oldestMs, b.oldestMs),
    newestMs: Math.max(a.newestMs, b.newestMs),
    queues: mostFirst([...a.queues, ...b.queues]).slice(0, groupQueuesMax),
  }
}

function mostFirst<Counted extends { readonly count: number }>(
  items: readonly Counted[],
): readonly Counted[] {
  return items.toSorted((a, b) => b.count - a.count)
}

/** What is read of a shard. */
export interface SummedShard extends Pick<Shard, 'readDeadLetters'> {
  readonly clock: Pick<Clock, 'nowMs'>
  readonly lists: Pick<ShardLists, 'deadLetters'>
}

/** How far a look goes. */
export interface SumBounds {
  /** Only this queue. */
  readonly queue?: QueueId
  readonly lettersMax: number
  readonly payer?: LookPayer | undefined
}

/**
 * Sums the dead letters of a shard, or of one queue of it.
 *
 * @returns the sums, and what the look has cost the event loop, in milliseconds
 * @throws STORE_UNAVAILABLE
 */
export async function sumDeadLetters(
  shard: SummedShard,
  { queue: only, lettersMax, payer }: SumBounds,
): Promise<DeadSums & { readonly costMs: number }> {
  const sums = new DeadLetterSums()
  const left = { letters: lettersMax, bytes: summedBytesMax }
  let costMs = 0
  const end = (): DeadSums & { readonly costMs: number } => ({ ...sums.sums(), costMs })
  for (let queue = only ?? (await queueAfter(shard)); queue !== undefined; ) {
    for (let from = 0; from < updateIdEnd; ) {
      if (left.letters <= 0 || left.bytes <= 0) {
        sums.endEarly()
        return end()
      }
      await payer?.turn()
      const limit = Math.min(deadLettersPerRead, left.letters)
      const range = { queue, from, to: updateIdEnd, limit, bytesMax: summedBytesPerRead }
      const read = await shard.readDeadLetters(range)
      const pageMs = lookCostMs(read.deadLetters)
      payer?.charge(pageMs)
      costMs += pageMs
      const livesFromMs = shard.clock.nowMs() - deadLetterLifeMs
      for (const letter of read.deadLetters) {
        left.letters -= 1
        left.bytes -= letter.text.length
        // An older one is about to be removed.
        if (letter.leftAtMs > livesFromMs) sums.add(queue, letter)
      }
      from = read.next
    }
    queue = only === undefined ? await queueAfter(shard, queue) : undefined
  }
  return end()
}

/**
 * Sums shards one after the other, all of them together as far as one may be. Those that cannot be read are left out.
 *
 * @param finish - what is made of the sums of a shard, which may read it, too
 */
export async function sumInTurn<Of extends SummedShard, Made>(
  shards: readonly Of[],
  finish: (shard: Of, sums: DeadSums & { readonly costMs: number }) => Promise<Made>,
): Promise<readonly Made[]> {
  const made: Made[] = []
  let lettersMax = lettersSummedMax
  for (const shard of shards) {
    try {
      const sums = await sumDeadLetters(shard, { lettersMax })
      lettersMax -= sums.count
      made.push(await finish(shard, sums))
    } catch {
      // The shard reports that it cannot be read.
    }
  }
  return made
}

/** Returns the next queue that has dead letters. */
async function queueAfter(
  { lists }: Pick<SummedShard, 'lists'>,
  queue?: QueueId,
): Promise<QueueId | undefined> {
  const after = queue === undefined ? undefined : { queue, updateId: updateIdEnd }
  const [next] = await lists.deadLetters({ after, limit: 1 })
  return next?.queue
}
