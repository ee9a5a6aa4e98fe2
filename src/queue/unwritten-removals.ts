/**
 * Ids that have left the queue in memory and may still be met in what is read from disk: their deletion is not
 * written yet, or was not when a read began that is still under way. Only of updates that are not in the window;
 * about those the window knows.
 */
export class UnwrittenRemovals {
  /** Made when there is a first one: an empty set takes 230 bytes, and most queues never have any. */
  #ids: Set<number> | undefined
  /** Written during a read, which may have begun before. */
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

  written(updateIds: readonly number[]): void {
    if (this.#ids === undefined) return
    if (this.#reads > 0) {
      this.#written ??= []
      // One by one: they may be more than a call takes arguments.
      for (const updateId of updateIds) this.#written.push(updateId)
      return
    }
    for (const updateId of updateIds) this.#ids.delete(updateId)
    if (this.#ids.size === 0) this.#ids = undefined
  }

  /** Reads, and gives the result to `use` in the same breath in which what it says is still true. */
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
