/** Runs one piece of work at a time, in the order in which they were asked for. */

/** Shared, since most mutexes of a server are never used. */
const idle = Promise.resolve()

export class Mutex {
  #last: Promise<unknown> = idle
  #pending = 0

  /** Whether work is running or waiting. */
  get isBusy(): boolean {
    return this.#pending > 0
  }

  /**
   * @param work - starts when all earlier work has ended, whether that succeeded or failed.
   * @returns what `work` returns.
   */
  run<T>(work: () => T | Promise<T>): Promise<T> {
    this.#pending += 1
    const running = this.#last.then(work)
    const end = (): void => {
      this.#pending -= 1
    }
    this.#last = running.then(end, end)
    return running
  }

  /** Resolves when all work that was asked for so far has ended. */
  async idle(): Promise<void> {
    await this.#last
  }
}

/** Runs work about one thing in the order in which it was asked for, and work about different things side by side. */
export class KeyedMutex<Key> {
  /** Of what work is running or waiting for. */
  readonly #mutexes = new Map<Key, Mutex>()

  /** The number of things for which work is running or waiting. */
  get size(): number {
    return this.#mutexes.size
  }

  /** Runs `work` as `Mutex.run` does, among what was asked for with the same key. */
  async run<T>(key: Key, work: () => T | Promise<T>): Promise<T> {
    const mutex = this.#mutexes.get(key) ?? new Mutex()
    this.#mutexes.set(key, mutex)
    try {
      return await mutex.run(work)
    } finally {
      if (!mutex.isBusy) this.#mutexes.delete(key)
    }
  }
}
