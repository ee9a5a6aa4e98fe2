/** A first-in, first-out queue with constant time for both ends, whose newest item can be taken back, too. `Array.shift` takes longer if the array is long. */

/**
 * A queue of waiting keys has at most this many empty places at its head, or as many as it has items, before it is
 * copied. Chosen: so copying takes constant time per item, and a short queue is never copied.
 */
const fifoSlackMax = 512

/** A queue of items other than undefined. */
export class Fifo<T> {
  #items: (T | undefined)[] = []
  #head = 0

  get length(): number {
    return this.#items.length - this.#head
  }

  /** The items, the oldest first. */
  *[Symbol.iterator](): Iterator<T> {
    for (let at = this.#head; at < this.#items.length; at++) {
      const item = this.#items[at]
      if (item !== undefined) yield item
    }
  }

  push(item: T): void {
    this.#items.push(item)
  }

  /** Removes and returns the newest item. */
  pop(): T | undefined {
    return this.length === 0 ? undefined : this.#items.pop()
  }

  /** Removes and returns the oldest item. */
  shift(): T | undefined {
    const item = this.#items[this.#head]
    if (item === undefined) return undefined
    this.#items[this.#head++] = undefined
    if (this.#head === this.#items.length) {
      this.#items.length = 0
      this.#head = 0
    } else if (this.#head >= fifoSlackMax && this.#head * 2 >= this.#items.length) {
      this.#items = this.#items.slice(this.#head)
      this.#head = 0
    }
    return item
  }
}
