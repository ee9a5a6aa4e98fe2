/** Runs work about one thing in the order in which it was asked for, and work about different things side by side. */
import { Mutex } from './mutex.ts'

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
