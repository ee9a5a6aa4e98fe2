/**
 * Keeps the first items in an order, of any number of items that are offered one by one. It holds at most twice as many as
 * it keeps, and sorts only when it is full, so an item costs a constant time and the logarithm of `count`.
 */
export class FirstInOrder<Item> {
  readonly #order: (a: Item, b: Item) => number
  readonly #count: number
  #items: Item[] = []

  /**
   * @param order - negative if `a` comes before `b`.
   * @param count - how many items are kept, at least 1.
   */
  constructor(order: (a: Item, b: Item) => number, count: number) {
    this.#order = order
    this.#count = count
  }

  offer(item: Item): void {
    this.#items.push(item)
    if (this.#items.length >= this.#count * 2) this.#items = [...this.items()]
  }

  /** Returns the first items in order. */
  items(): readonly Item[] {
    return this.#items.toSorted(this.#order).slice(0, this.#count)
  }
}
