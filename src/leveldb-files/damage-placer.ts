/**
 * Adds to each damaged place of a file the readable keys before and after it. The key after it is known only when the
 * next entry has been read, so damaged places wait for that entry.
 */
import type { FilesDamage, FilesPart, RecordVersion } from './files-part.ts'

/** Collects the damaged places of one file, which must be read in order. */
export class DamagePlacer {
  readonly #file: Pick<FilesDamage, 'file' | 'isLog'>
  #after: Buffer | undefined
  #lastKey: Buffer | undefined
  #waiting: FilesDamage[] = []

  /**
   * @param file - path of the file.
   * @param firstKey - the first key of the file, if it is known.
   */
  constructor(file: string, firstKey: Buffer | undefined) {
    this.#file = damagedFile(file)
    this.#after = firstKey
  }

  /** Whether a damaged place is waiting for the entry after it. */
  get isWaiting(): boolean {
    return this.#waiting.length > 0
  }

  /** The last key of the entries so far. */
  get lastKey(): Buffer | undefined {
    return this.#lastKey
  }

  /** Adds a damaged place that may have cost the records between the keys around it. */
  add(damage: { readonly offset: number; readonly what: string }): void {
    const { offset, what } = damage
    this.#waiting.push({ ...this.#file, offset, what, mayLose: true, after: this.#after })
  }

  /** Yields a damaged place that needs no neighbors: it has cost no record, or exactly the record of its key. */
  *certain(damage: {
    readonly offset: number
    readonly what: string
    readonly key?: Buffer
    readonly mayLose?: boolean
  }): Generator<FilesPart> {
    this.#lastKey = damage.key ?? this.#lastKey
    yield { kind: 'damage', mayLose: false, ...damage, ...this.#file }
  }

  /** Yields the waiting damaged places, then the readable entries that follow them. */
  *entries(entries: readonly RecordVersion[]): Generator<FilesPart> {
    const [first] = entries
    if (first === undefined) return
    yield* this.end(first.key)
    this.#lastKey = entries.at(-1)?.key
    this.#after = this.#lastKey
    yield { kind: 'entries', entries }
  }

  /**
   * Ends the file and yields the waiting damaged places.
   *
   * @param before - the last key that the file should have, if it is known.
   */
  *end(before: Buffer | undefined): Generator<FilesPart> {
    for (const damage of this.#waiting) yield { kind: 'damage', ...damage, before }
    this.#waiting = []
  }
}

/** Returns the fields with which a damage names its file. */
export function damagedFile(file: string): Pick<FilesDamage, 'file' | 'isLog'> {
  return { file, isLog: file.endsWith('.log') }
}
