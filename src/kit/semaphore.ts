/**
 * Lets a number of holders in at a time. The others wait, first come, first served, and may give up.
 */
export class Semaphore {
  #free: number
  readonly #waiting = new Set<() => void>()

  /** @param permits - how many holders there may be. */
  constructor(permits: number) {
    this.#free = permits
  }

  /**
   * @param start - called when a permit is free, before `enter` returns if one is free now.
   * @returns gives the permit back, or gives up waiting. Only its first call counts.
   */
  enter(start: () => void): () => void {
    // A function of its own, since one caller may wait twice with the same `start`.
    const waiter = (): void => start()
    let isOver = false
    const isAdmitted = this.#free > 0
    if (isAdmitted) this.#free -= 1
    else this.#waiting.add(waiter)
    const leave = (): void => {
      if (isOver) return
      isOver = true
      if (!this.#waiting.delete(waiter)) this.#admitNext()
    }
    if (isAdmitted) start()
    return leave
  }

  #admitNext(): void {
    const [next] = this.#waiting
    if (next === undefined) {
      this.#free += 1
    } else {
      this.#waiting.delete(next)
      next()
    }
  }
}

/** A semaphore for each key. A key that nobody holds takes no memory. */
export class KeyedSemaphore {
  readonly #permits: number
  readonly #held = new Map<string, { readonly semaphore: Semaphore; holders: number }>()

  /** @param permits - how many holders each key may have. */
  constructor(permits: number) {
    this.#permits = permits
  }

  /** As `Semaphore.enter`, for one key. */
  enter(key: string, start: () => void): () => void {
    let held = this.#held.get(key)
    if (held === undefined) {
      held = { semaphore: new Semaphore(this.#permits), holders: 0 }
      this.#held.set(key, held)
    }
    const { semaphore } = held
    held.holders += 1
    const leave = semaphore.enter(start)
    let isOver = false
    return () => {
      if (isOver) return
      isOver = true
      leave()
      held.holders -= 1
      if (held.holders === 0) this.#held.delete(key)
    }
  }
}
