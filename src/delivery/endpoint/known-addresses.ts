/**
 * The last known addresses of webhooks and which of them worked: addresses that setWebhook has verified and that
 * deliveries have looked up since. They survive the dispatcher and the bot's unloading, so a bot that gets an update
 * every few minutes neither looks its name up each time nor tries a dead address first. They end with the worker, and so
 * does the blocklist they were judged by.
 */
import { setLast } from '../../kit/set-last.ts'

/** The addresses of one webhook. Whatever resolves the name updates this object in place. */
export interface KnownAddresses {
  /** All of them may be connected to. They are tried in this order. */
  addresses: readonly string[]
  /** The number of the address to try next. It only grows; modulo the number of addresses it is an index. */
  next: number
  /** When they were looked up, monotonic. */
  foundMs: number
}

export function noAddresses(): KnownAddresses {
  return { addresses: [], next: 0, foundMs: Number.NEGATIVE_INFINITY }
}

/** The webhook that the addresses belong to. */
export interface AddressOwner {
  readonly queue: number
  readonly url: string
  readonly ipAddress?: string | undefined
}

interface Entry {
  readonly owner: AddressOwner
  readonly known: KnownAddresses
}

/** The addresses of this many webhooks are kept per worker: 5 MB with one or two addresses each, 50 MB if each had 32. */
const webhookAddressBookMax = 20_000

/** The known addresses of a worker's queues, limited to those used last. */
export class AddressBook {
  readonly #max: number
  /** The most recently used entry is last. */
  readonly #entries = new Map<number, Entry>()

  constructor(max: number = webhookAddressBookMax) {
    this.#max = max
  }

  /**
   * Returns what is known about a queue's webhook. Starts over if its URL or fixed address has changed since the last
   * call.
   */
  of(owner: AddressOwner): KnownAddresses {
    const { queue, url, ipAddress } = owner
    const before = this.#entries.get(queue)
    const isSame = before?.owner.url === url && before.owner.ipAddress === ipAddress
    const entry = isSame ? before : { owner: { queue, url, ipAddress }, known: noAddresses() }
    const oldest = setLast(this.#entries, [queue, entry], this.#max)
    if (oldest !== undefined) this.forget(oldest)
    return entry.known
  }

  forget(queue: number): void {
    this.#entries.delete(queue)
  }
}
