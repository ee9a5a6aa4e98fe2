/**
 * Fills new shards from the sections of a backup. With S old shards and T new ones, both powers of two, the bots of section
 * s are in the shards t with t = s modulo the smaller of the two. So a section has T/S shards, or a shard has S/T sections:
 *
 *   4 -> 8:  section 1 -> shards 1, 5          8 -> 4:  sections 1, 5 -> shard 1
 *
 * At most `shardsFilledMax` shards are open at a time; a section with more of them is read several times.
 */
import { ShardMap } from '../../process/shard-map.ts'
import { randomFirstId } from '../../shard/id-mark.ts'
import { type ImportedRecord, ImportedSection } from './imported-section.ts'
import type { OpenedStore } from '../../store/store-engine.ts'
import type { Store, StoreOperation } from '../../store/store.ts'
import type { BackupReader } from './backup-reader.ts'
import { retyped, type MovedTypes } from './moved-types.ts'
import { bytesPerCopy, entriesPerCopy } from '../../cli/limits.ts'

/**
 * `postbote import` fills this many shards at a time. Chosen: each of them holds an open database, and a backup of few shards
 * is read once for so many new ones.
 */
export const shardsFilledMax = 16

export interface ImportTarget {
  /** Its name for people. */
  readonly shown: string
  readonly shards: number
  /** Whether shards have marks (shard/id-mark.ts). */
  readonly hasMarks: boolean
  /** Opens a new shard. */
  open(shard: number): Promise<OpenedStore>
  /** Stores the bounds of a shard's ids, if it has marks. */
  bound(shard: number, bounds: IdBounds): Promise<void>
}

interface IdBounds {
  readonly below: number
  readonly from: number
}

export interface ImportedShardsOptions {
  readonly backup: Pick<BackupReader, 'sections' | 'recordsOf'>
  readonly target: ImportTarget
  readonly moves: MovedTypes
  /** See ImportedSectionOptions. */
  readonly skippedIds: number
  /** Returns numbers in [0, 1). */
  readonly random: () => number
}

export class ImportedShards {
  readonly #options: ImportedShardsOptions
  readonly #map: ShardMap
  #records = 0

  constructor(options: ImportedShardsOptions) {
    this.#options = options
    this.#map = new ShardMap({ shards: options.target.shards, workers: 1 })
  }

  /**
   * Fills all shards.
   *
   * @param onProgress - gets the number of shards that are filled and of all shards
   * @returns the number of records of the backup; those that the import adds do not count
   */
  async fill(onProgress: (done: number, of: number) => void): Promise<number> {
    const { backup, target } = this.#options
    const classes = Math.min(backup.sections.length, target.shards)
    let done = 0
    for (let first = 0; first < classes; first++) {
      const shards = numbersFrom(first, { below: target.shards, step: classes })
      const sections = numbersFrom(first, { below: backup.sections.length, step: classes })
      for (let at = 0; at < shards.length; at += shardsFilledMax) {
        const some = shards.slice(at, at + shardsFilledMax)
        onProgress(done, target.shards)
        await this.#fillSome(some, sections)
        done += some.length
      }
    }
    onProgress(done, target.shards)
    return this.#records
  }

  async #fillSome(shards: readonly number[], sections: readonly number[]): Promise<void> {
    const { target } = this.#options
    const writers = new Map<number, ShardWriter>()
    const bounds: IdBounds[] = []
    try {
      for (const shard of shards) {
        const { store } = await target.open(shard)
        writers.set(shard, new ShardWriter(store))
      }
      for (const section of sections) bounds.push(await this.#copy(section, writers))
    } finally {
      for (const writer of writers.values()) await writer.close()
    }
    const below = Math.max(...bounds.map((each) => each.below))
    const from = Math.max(...bounds.map((each) => each.from))
    for (const shard of shards) await target.bound(shard, { below, from })
  }

  /** Copies the records of a section that belong to these shards. Returns the bounds of its ids. */
  async #copy(number: number, writers: ReadonlyMap<number, ShardWriter>): Promise<IdBounds> {
    const { backup, target, moves, skippedIds, random } = this.#options
    const head = backup.sections[number]
    if (head === undefined) throw new RangeError(`expected a section of the backup, got ${number}`)
    const section = new ImportedSection({
      head,
      skippedIds,
      shardOf: (botId) => this.#map.shardOf(botId),
      otherwise: number % target.shards,
      firstId: () => randomFirstId(random),
      hasMarks: target.hasMarks,
      types: moves.numbers.length,
    })
    const put = async ({ shard, entry }: ImportedRecord): Promise<void> => {
      await writers.get(shard)?.put({ type: 'put', ...entry })
    }
    for await (const entries of backup.recordsOf(number)) {
      for (const entry of entries) {
        const taken = section.take(entry)
        if (writers.has(taken.shard)) this.#records += 1
        await put({ ...taken, entry: retyped(taken.entry, moves) })
      }
    }
    for (const added of section.added()) await put(added)
    for (const writer of writers.values()) await writer.flush()
    return section.bounds
  }
}

/** Writes the records of one shard in batches. */
class ShardWriter {
  readonly #store: Store
  #batch: StoreOperation[] = []
  #bytes = 0

  constructor(store: Store) {
    this.#store = store
  }

  async put(operation: StoreOperation & { readonly type: 'put' }): Promise<void> {
    this.#batch.push(operation)
    this.#bytes += operation.value.length
    if (this.#batch.length >= entriesPerCopy || this.#bytes >= bytesPerCopy) await this.flush()
  }

  async flush(): Promise<void> {
    if (this.#batch.length === 0) return
    await this.#store.write(this.#batch, { sync: true })
    this.#batch = []
    this.#bytes = 0
  }

  close(): Promise<void> {
    return this.#store.close()
  }
}

function numbersFrom(
  first: number,
  { below, step }: { readonly below: number; readonly step: number },
): readonly number[] {
  const count = Math.ceil((below - first) / step)
  return Array.from({ length: count }, (_, nth) => first + nth * step)
}
