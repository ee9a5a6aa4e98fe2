/**
 * A bound for the ids of a shard that lies outside its directory, in `<dir>/ids/<shard>`, so that ids never come again
 * even where everything in that directory was lost:
 *
 *     {"below":31000000,"from":0,"isDistrusted":false,"crc":2774105215}
 *
 * below          every id that a queue of the shard has given is below it. It is raised by 1,000,000 more than is needed,
 *                synced, before a group with a larger id is written: once in that many ids of the queue with the largest.
 * from           queues without a record of their ids begin at it or above: 0 until such records were lost
 * isDistrusted   records were lost: the next opening of the shard counts all its queues anew and gives them ids from
 *                `from` on
 *
 * Where the file is missing or damaged, as in a directory that an earlier version has made, it is made from the largest
 * id in the shard, which must then be whole.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { idsReservedAhead, updateIdFirstMax } from '../limits.ts'
import { endOf, keyBehind, startOf, updateIdEnd } from './keys.ts'
import { decodeQueueState } from './record.ts'
import { ShardDamaged } from '../store/level/shard-damaged.ts'
import type { Store } from '../store/store.ts'
import { makePrivateDirectory, writeFileAtomically } from '../store/write-file.ts'
import { isMissing } from '../store/is-missing.ts'
import { Mutex } from '../kit/mutex.ts'
import { messageOf } from '../message-of.ts'

/** Ids begin below 2^27. */
const unknownIdsEnd = 2 ** 30

interface IdBounds {
  readonly below: number
  readonly from: number
  readonly isDistrusted: boolean
}

export interface IdMarkPlace {
  /** The data directory. */
  readonly directory: string
  readonly shard: number
}

/** Bounds the update ids that a shard has given. `IdMark.read` makes one. */
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

  /** False where the file is missing or damaged, until `reserve`. */
  get isKnown(): boolean {
    return this.#bounds !== undefined
  }

  /** No id of the shard that was ever given is this or above. */
  get below(): number {
    return this.#bounds?.below ?? updateIdFirstMax
  }

  get from(): number {
    return this.#bounds?.from ?? 0
  }

  get isDistrusted(): boolean {
    return this.#bounds?.isDistrusted ?? false
  }

  /** Resolves when it is durable that ids below `nextId` may have been given; at once where it is so already. */
  reserve(nextId: number): Promise<void> | undefined {
    if (this.#bounds !== undefined && nextId <= this.#bounds.below) return undefined
    return this.#change((bounds) => ({
      ...bounds,
      below: Math.max(bounds.below, Math.min(nextId + idsReservedAhead, updateIdEnd)),
    }))
  }

  /**
   * Records of the shard were lost, and with them which ids were given: none below the mark is given again. To be called
   * by whoever puts a shard back together, before it is opened.
   */
  distrust(): Promise<void> {
    // Without a mark nothing is known but where queues begin: far above that hardly any queue has come.
    const unknown = this.isKnown ? 0 : unknownIdsEnd
    return this.#change((bounds) => {
      const below = Math.max(bounds.below, unknown)
      return { below, from: below, isDistrusted: true }
    })
  }

  /** Every queue of the shard was counted anew. */
  trust(): Promise<void> {
    return this.#change((bounds) => ({ ...bounds, isDistrusted: false }))
  }

  #change(change: (bounds: IdBounds) => IdBounds): Promise<void> {
    return this.#writing.run(() => this.#write(change))
  }

  async #write(change: (bounds: IdBounds) => IdBounds): Promise<void> {
    const bounds = change(this.#bounds ?? { below: 0, from: 0, isDistrusted: false })
    const record = JSON.stringify({ ...bounds, crc: crcOf(bounds) })
    await makePrivateDirectory(join(this.#place.directory, 'ids'))
    await writeFileAtomically(pathOf(this.#place), `${record}\n`, 0o600)
    this.#bounds = bounds
  }
}

/**
 * The largest `nextId` of all queues of a shard, 0 where there is none. Records that cannot be read are passed over, and
 * where a file of theirs cannot be, it is an id that hardly any queue has come to.
 */
export function highestNextId(store: Pick<Store, 'range'>): Promise<number> {
  return readHighest(store).catch(() => unknownIdsEnd)
}

async function readHighest(store: Pick<Store, 'range'>): Promise<number> {
  let highest = 0
  for (let gte = startOf('s'); ; ) {
    const entries = await store.range({ gte, lt: endOf('s'), limit: 1_000 })
    const last = entries.at(-1)
    if (last === undefined) return highest
    for (const entry of entries) {
      try {
        highest = Math.max(highest, decodeQueueState(entry).nextId)
      } catch {
        // Whoever loads that queue is told.
      }
    }
    gte = keyBehind(last.key)
  }
}

/** The next write replaces the file, so a mark that the disk cannot read is no worse than a missing one. */
function isBadSector(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EIO'
}

function pathOf({ directory, shard }: IdMarkPlace): string {
  return join(directory, 'ids', `${shard}`)
}

function crcOf({ below, from, isDistrusted }: IdBounds): number {
  return crc32(`${below} ${from} ${isDistrusted}`)
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
    const { below, from, isDistrusted, crc } = JSON.parse(text)
    const bounds = { below, from, isDistrusted }
    return crcOf(bounds) === crc ? bounds : undefined
  } catch {
    return undefined
  }
}
