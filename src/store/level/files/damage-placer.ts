/**
 * Says of each damage of one file which readable keys lie before and after it. The key after a damage is known only when
 * the next entry has been read, so that damages wait for it.
 */

import type { TableEntry } from './table-block.ts'

/** A damage that was found in the files of a shard. */
export interface ShardDamage {
  readonly file: string
  /** In the file: of the block or record that is damaged. */
  readonly offset: number
  readonly what: string
  /** Whether records may be lost by it; false where all that it concerns could be read in another way. */
  readonly mayLose: boolean
  /** Of the record, where the damage is that of a single one. */
  readonly key?: Buffer | undefined
  /**
   * The last readable key before the damage and the first after it: what is lost of a table lies between them (of a missing
   * table they are its own first and last keys), and what is lost of a log was written between them.
   */
  readonly after?: Buffer | undefined
  readonly before?: Buffer | undefined
}

/** What reading the files of a shard yields. */
export type ShardPart =
  | ({ readonly kind: 'damage' } & ShardDamage)
  | { readonly kind: 'entries'; readonly entries: readonly TableEntry[] }

export class DamagePlacer {
  readonly #file: string
  #after: Buffer | undefined
  #lastKey: Buffer | undefined
  #waiting: ShardDamage[] = []

  /** `firstKey` is the one before which the file has none, where it is known. */
  constructor(file: string, firstKey: Buffer | undefined) {
    this.#file = file
    this.#after = firstKey
  }

  /** Whether a damage has no entry after it yet. */
  get isWaiting(): boolean {
    return this.#waiting.length > 0
  }

  /** Of the entries so far. */
  get lastKey(): Buffer | undefined {
    return this.#lastKey
  }

  /** A damage by which records between the neighboring keys may be lost. */
  add(damage: { readonly offset: number; readonly what: string }): void {
    const { offset, what } = damage
    this.#waiting.push({ file: this.#file, offset, what, mayLose: true, after: this.#after })
  }

  /** A damage that needs no neighbors: it loses nothing by itself, or exactly the record of its key. */
  *certain(damage: {
    readonly offset: number
    readonly what: string
    readonly key?: Buffer
    readonly mayLose?: boolean
  }): Generator<ShardPart> {
    this.#lastKey = damage.key ?? this.#lastKey
    yield { kind: 'damage', mayLose: false, ...damage, file: this.#file }
  }

  *entries(entries: readonly TableEntry[]): Generator<ShardPart> {
    const [first] = entries
    if (first === undefined) return
    yield* this.end(first.key)
    this.#lastKey = entries.at(-1)?.key
    this.#after = this.#lastKey
    yield { kind: 'entries', entries }
  }

  /** No entry follows; `before` is the last key that the file should have, where it is known. */
  *end(before: Buffer | undefined): Generator<ShardPart> {
    for (const damage of this.#waiting) yield { kind: 'damage', ...damage, before }
    this.#waiting = []
  }
}
