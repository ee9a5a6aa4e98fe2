/**
 * Keeps the first items in an order, of any number of items that are offered one by one. It holds at most twice as many as
 * it keeps, and sorts only when it is full. From then on an item that comes after all that are kept costs one comparison.
 */
export class FirstInOrder<Item> {
  readonly #order: (a: Item, b: Item) => number
  readonly #count: number
  #items: Item[] = []
  /** The last of the items that were kept when it was full the last time. */
  #last: Item | undefined

  /**
   * @param order - negative if `a` comes before `b`.
   * @param count - how many items are kept, at least 1.
   */
  constructor(order: (a: Item, b: Item) => number, count: number) {
    this.#order = order
    this.#count = count
  }

  offer(item: Item): void {
    if (this.#last !== undefined && this.#order(item, this.#last) > 0) return
    this.#items.push(item)
    if (this.#items.length < this.#count * 2) return
    this.#items = [...this.items()]
    this.#last = this.#items.at(-1)
  }

  /** Returns the first items in order. */
  items(): readonly Item[] {
    return this.#items.toSorted(this.#order).slice(0, this.#count)
  }
}
