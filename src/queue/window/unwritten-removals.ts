/**
 * The ids of updates that have left the queue in memory but may still appear in reads from disk, because their deletion
 * is not written yet or was not written when a current read began. Only updates outside the window are listed here; the
 * window knows its own removals.
 */
export class UnwrittenRemovals {
  /** Created with the first id: an empty set takes 230 bytes, and most queues never need it. */
  #ids: Set<number> | undefined
  /** Ids whose deletion was written during a read that may have begun before. */
  #written: number[] | undefined
  #reads = 0

  get isReading(): boolean {
    return this.#reads > 0
  }

  has(updateId: number): boolean {
    return this.#ids?.has(updateId) === true
  }

  add(updateId: number): void {
    this.#ids ??= new Set()
    this.#ids.add(updateId)
  }

  /** The deletion of these updates is written. They are forgotten once no current read can return them. */
  written(updateIds: readonly number[]): void {
    if (this.#ids === undefined) return
    if (this.#reads > 0) {
      this.#written ??= []
      // One at a time: there may be more of them than a call can take as arguments.
      for (const updateId of updateIds) this.#written.push(updateId)
      return
    }
    for (const updateId of updateIds) this.#ids.delete(updateId)
    if (this.#ids.size === 0) this.#ids = undefined
  }

  /** Reads, and calls `use` with the result in the same turn, while `has` still covers that read. */
  async during<T, R>(read: () => Promise<T>, use: (read: T) => R): Promise<R> {
    this.#reads += 1
    try {
      return use(await read())
    } finally {
      this.#reads -= 1
      if (this.#reads === 0) this.#forgetWritten()
    }
  }

  #forgetWritten(): void {
    const written = this.#written
    this.#written = undefined
    if (written !== undefined) this.written(written)
  }
}
