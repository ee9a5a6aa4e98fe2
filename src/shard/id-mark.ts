/**
 * An upper bound for the ids of a shard, stored outside the shard's directory in `<dir>/ids/<shard>`, so that no id
 * is assigned again even if everything in that directory was lost:
 *
 *     {"below":31000000,"from":0,"isDistrusted":false,"crc":2774105215}
 *
 *   below          every id that a queue of the shard has assigned is below it. Before a group with a larger id is
 *                  written, it is raised to 1,000,000 more than necessary and synced: one write for that many ids of
 *                  the queue with the largest ids.
 *   from           queues without an `s` record begin at this id or above; 0 until `s` records may have been lost
 *   isDistrusted   records were lost: the next opening of the shard recounts all its queues and gives them ids from
 *                  `from` on
 *
 * After a torn end of a log, `"torn":{"isNew":false,"skips":[5000,115000],"crc":1}` follows. A queue whose stored next
 * id is in a range of `skips`, such as 5000 to 114999, goes on at the end of that range, so no start has to write the
 * `s` records of all queues. `isNew` is true until the ranges of this torn end are there.
 *
 * If the file is missing or damaged, as in a directory created by an earlier version, it is created from the largest
 * id in the shard. In that case the shard must be undamaged.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { updateIdFirstMax } from '../kit/limits.ts'
import { kinds } from './kinds.ts'
import { keyAfter, updateIdEnd } from './records/record-keys.ts'
import { decodeQueueState, type QueueState } from './records/record.ts'
import { ShardDamaged } from '../store/shard-damaged.ts'
import type { Store } from '../store/store.ts'
import { makePrivateDirectory, writeFileAtomically } from '../store/write-file.ts'
import { isMissing } from '../store/read-if-there.ts'
import { Mutex } from '../kit/mutex.ts'
import { messageOf } from '../kit/errors.ts'

/** Larger than the ids of nearly all queues: ids begin below 2^27. */
const unknownIdsEnd = 2 ** 30

interface IdBounds {
  readonly below: number
  readonly from: number
  readonly isDistrusted: boolean
  readonly torn?: TornIds | undefined
}

interface TornIds {
  readonly isNew: boolean
  /** Pairs of a begin and an end, in order. */
  readonly skips: readonly number[]
}

export interface IdMarkPlace {
  /** The data directory. */
  readonly directory: string
  readonly shard: number
}

/**
 * After a crash that left a torn end of a log, the ids of each queue go on this much higher: the end may have held as many
 * ids as a log, since nothing tells an end that was never synced from one that was lost.
 */
export const tornSkippedIds = 110_000
/**
 * A shard may assign this many ids before it must record again, synced, how far it has come: a synced write per million
 * ids costs next to nothing.
 */
export const idsReservedAhead = 1_000_000
/**
 * A numbering begins at this id or above, as in the reference, which uses twice its longest queue plus 1. [ref] A large
 * first id also keeps clear of clients that treat 0 and 1 as special.
 */
const updateIdFirstMin = 2_000_001

/** Bounds the update ids that a shard has assigned. Create it with `IdMark.read`. */
export class IdMark {
  readonly #place: IdMarkPlace
  #bounds: IdBounds | undefined
  readonly #writing = new Mutex()

  constructor(place: IdMarkPlace, bounds: IdBounds | undefined) {
    this.#place = place
    this.#bounds = bounds
  }

  static async read(place: IdMarkPlace): Promise<IdMark> {
    return new IdMark(place, await readBounds(pathOf(place)))
  }

  /** Writes the mark of a new shard, with records that were imported. */
  static async create(
    place: IdMarkPlace,
    { below, from }: { readonly below: number; readonly from: number },
  ): Promise<void> {
    const mark = new IdMark(place, undefined)
    await mark.#change((bounds) => ({ ...bounds, below, from }))
  }

  /** False if the file is missing or damaged, until `reserve`. */
  get isKnown(): boolean {
    return this.#bounds !== undefined
  }

  /** Every id that the shard ever assigned is below this one, provided that `isKnown` is true. */
  get below(): number {
    return this.#bounds?.below ?? updateIdFirstMax
  }

  get from(): number {
    return this.#bounds?.from ?? 0
  }

  get isDistrusted(): boolean {
    return this.#bounds?.isDistrusted ?? false
  }

  /**
   * Records durably that ids below `nextId` may have been assigned. Returns undefined if that is already recorded.
   */
  reserve(nextId: number): Promise<void> | undefined {
    if (this.#bounds !== undefined && nextId <= this.#bounds.below) return undefined
    return this.#change((bounds) => ({
      ...bounds,
      below: Math.max(bounds.below, Math.min(nextId + idsReservedAhead, updateIdEnd)),
    }))
  }

  /**
   * Notes that the shard has lost records, so that it is unknown which ids were assigned: no id below the mark is
   * assigned again. Call this after putting a shard back together and before opening it.
   */
  distrust(): Promise<void> {
    // Without a mark, it is only known where queues begin. Hardly any queue has reached an id as large as this one.
    const unknown = this.isKnown ? 0 : unknownIdsEnd
    return this.#change((bounds) => {
      const below = Math.max(bounds.below, unknown)
      return { below, from: below, isDistrusted: true }
    })
  }

  /** Notes that a torn end is about to be cut off a log. Call `skip` when the shard is open. */
  tear(): Promise<void> {
    // Without a mark, it is not known which ids to skip before the shard is open.
    if (!this.isKnown) return this.distrust()
    const { torn } = this.#bounds ?? {}
    return this.#change((bounds) => ({
      ...bounds,
      torn: { skips: torn?.skips ?? [], isNew: true },
    }))
  }

  /** Has all queues skip ids if a torn end was cut off, without changing their records. */
  async skip(store: Pick<Store, 'range'>): Promise<void> {
    if (this.#bounds?.torn?.isNew !== true) return
    const skips = await this.#skipsOf(store)
    await this.#change((bounds) => ({ ...afterLoss(bounds), torn: { skips, isNew: false } }))
  }

  /** Notes that `s` records may be lost, and with them the ids that their queues used. */
  lose(): Promise<void> {
    return this.#change(afterLoss)
  }

  /** Returns the next id of a queue whose `s` record has this one. */
  afterSkips(nextId: number): number {
    const skips = this.#bounds?.torn?.skips ?? []
    let [low, high] = [0, skips.length]
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((skips[middle] ?? 0) <= nextId) low = middle + 1
      else high = middle
    }
    // An odd number of bounds is at or below an id that is in a range.
    return low % 2 === 1 ? (skips[low] ?? nextId) : nextId
  }

  async #skipsOf(store: Pick<Store, 'range'>): Promise<readonly number[]> {
    const nextIds: number[] = []
    for await (const { nextId } of queueStates(store)) nextIds.push(nextId)
    const skips: number[] = []
    for (const nextId of nextIds.toSorted((left, right) => left - right)) {
      const end = Math.min(this.afterSkips(nextId) + tornSkippedIds, updateIdEnd)
      const before = skips.at(-1) ?? 0
      if (nextId >= before) skips.push(nextId, end)
      else skips[skips.length - 1] = Math.max(before, end)
    }
    return skips
  }

  /** Notes that every queue of the shard was recounted. */
  trust(): Promise<void> {
    return this.#change((bounds) => ({ ...bounds, isDistrusted: false }))
  }

  #change(change: (bounds: IdBounds) => IdBounds): Promise<void> {
    return this.#writing.run(() => this.#write(change))
  }

  async #write(change: (bounds: IdBounds) => IdBounds): Promise<void> {
    const bounds = change(this.#bounds ?? { below: 0, from: 0, isDistrusted: false })
    const { torn, ...others } = bounds
    const record = JSON.stringify({
      ...others,
      crc: crcOf(bounds),
      torn: torn && { ...torn, crc: crcOfTorn(torn) },
    })
    await makePrivateDirectory(join(this.#place.directory, 'ids'))
    await writeFileAtomically(pathOf(this.#place), `${record}\n`, 0o600)
    this.#bounds = bounds
  }
}

/**
 * Queues without an `s` record begin above all ids that the shard has used. If some of these are so large that few would be
 * left, such a queue begins anywhere, and meets its lost ids only by a rare chance.
 */
function afterLoss(bounds: IdBounds): IdBounds {
  return bounds.below > unknownIdsEnd ? bounds : { ...bounds, from: bounds.below }
}

/**
 * Returns the largest `nextId` of all queues of a shard, or 0 if there is none. Skips records that cannot be decoded.
 * If a file cannot be read, returns an id that hardly any queue has reached.
 */
export function highestNextId(store: Pick<Store, 'range'>): Promise<number> {
  return readHighest(store).catch(() => unknownIdsEnd)
}

async function readHighest(store: Pick<Store, 'range'>): Promise<number> {
  let highest = 0
  for await (const { nextId } of queueStates(store)) highest = Math.max(highest, nextId)
  return highest
}

async function* queueStates(store: Pick<Store, 'range'>): AsyncGenerator<QueueState> {
  for (let gte = kinds.state.start(); ; ) {
    const entries = await store.range({ gte, lt: kinds.state.range().lt, limit: 1_000 })
    const last = entries.at(-1)
    if (last === undefined) return
    for (const entry of entries) {
      try {
        yield decodeQueueState(entry)
      } catch {
        // The damaged record is reported when its queue is loaded.
      }
    }
    gte = keyAfter(last.key)
  }
}

/** The next write replaces the file, so a mark that the disk cannot read is treated like a missing one. */
function isBadSector(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EIO'
}

function pathOf({ directory, shard }: IdMarkPlace): string {
  return join(directory, 'ids', `${shard}`)
}

function crcOf({ below, from, isDistrusted }: IdBounds): number {
  return crc32(`${below} ${from} ${isDistrusted}`)
}

function crcOfTorn({ isNew, skips }: TornIds): number {
  return crc32(JSON.stringify([isNew, skips]))
}

async function readBounds(path: string): Promise<IdBounds | undefined> {
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (error) {
    if (isMissing(error) || isBadSector(error)) return undefined
    const reason = messageOf(error)
    throw new ShardDamaged({ file: path, reason }, { cause: error })
  }
  try {
    const { below, from, isDistrusted, crc, torn } = JSON.parse(text)
    const bounds = { below, from, isDistrusted, torn }
    if (torn !== undefined && crcOfTorn(torn) !== torn.crc) return undefined
    return crcOf(bounds) === crc ? bounds : undefined
  } catch {
    return undefined
  }
}

/**
 * Returns a random id to begin a numbering with (protocol.md §4).
 *
 * @param random - returns numbers in [0, 1)
 * @returns an update id from 2,000,001 to 2^27 - 1
 */
export function randomFirstId(random: () => number): number {
  return updateIdFirstMin + Math.floor(random() * (updateIdFirstMax - updateIdFirstMin + 1))
}
