/** The open exchanges of a link by their numbers, which rise, and begin again after 32 bits. */
import assert from 'node:assert/strict'

/**
 * This is no Map. A Map whose entries come and go is copied to a new table again and again; each table refers to the next
 * one, and keeps what it held. Once a dead table is in the old generation, all later tables follow it there with their
 * exchanges, requests and responses, until the next full collection. On Node 20 that was half of the CPU time of a
 * forwarded call. The numbered properties of an object are kept in a table without such references.
 */
export class ExchangeTable<Exchange> {
  #open: Record<number, Exchange> = {}
  #size = 0
  #last: number

  /** @param last - the number before the first one of `nextNumber` */
  constructor(last = 0) {
    this.#last = last
  }

  get size(): number {
    return this.#size
  }

  get(exchange: number): Exchange | undefined {
    return this.#open[exchange]
  }

  /** Returns a number for a new exchange. A stream may still have its own when all others were used once: in days, on a busy link. */
  nextNumber(): number {
    do this.#last = (this.#last + 1) >>> 0
    while (this.#last === 0 || this.#open[this.#last] !== undefined)
    return this.#last
  }

  /** The number must not be open. */
  add(exchange: number, value: Exchange): void {
    assert(this.#open[exchange] === undefined, 'an exchange is opened once')
    this.#open[exchange] = value
    this.#size += 1
  }

  /** Returns whether it was open. */
  delete(exchange: number): boolean {
    if (this.#open[exchange] === undefined) return false
    Reflect.deleteProperty(this.#open, exchange)
    this.#size -= 1
    return true
  }

  values(): Exchange[] {
    return Object.values(this.#open)
  }

  /** Removes all of them and returns them. */
  clear(): Exchange[] {
    const open = this.values()
    this.#open = {}
    this.#size = 0
    return open
  }
}
