/**
 * The addresses of webhooks as they were found last, and which of them worked: what setWebhook has verified, and what
 * deliveries have looked up since. They outlive the dispatcher and the bot's place in memory, so that a bot which gets an
 * update every few minutes neither looks its name up each time nor tries a dead address first; they end with the worker, and
 * the blocklist that they were judged by with it.
 */

import { webhookAddressBookMax } from '../limits.ts'

/** Whoever resolves the name changes it in place. */
export interface KnownAddresses {
  /** All of them may be connected to, and are tried in this order. */
  addresses: readonly string[]
  /** The place of the one that is tried next, counted on and on. */
  next: number
  /** Monotonic; when they were looked up. */
  foundMs: number
}

export function noAddresses(): KnownAddresses {
  return { addresses: [], next: 0, foundMs: Number.NEGATIVE_INFINITY }
}

/** What the addresses are those of. */
export interface AddressOwner {
  readonly queue: number
  readonly url: string
  readonly ipAddress?: string | undefined
}

interface Entry {
  readonly owner: AddressOwner
  readonly known: KnownAddresses
}

/** Those of a worker's queues, the ones used last. */
export class AddressBook {
  readonly #max: number
  /** Those used last at the end. */
  readonly #entries = new Map<number, Entry>()

  constructor(max: number = webhookAddressBookMax) {
    this.#max = max
  }

  /** What is known of a queue's webhook; begun anew where it leads elsewhere than the one that was asked for last. */
  of(owner: AddressOwner): KnownAddresses {
    const { queue, url, ipAddress } = owner
    const before = this.#entries.get(queue)
    const isSame = before?.owner.url === url && before.owner.ipAddress === ipAddress
    const entry = isSame ? before : { owner: { queue, url, ipAddress }, known: noAddresses() }
    this.#entries.delete(queue)
    this.#entries.set(queue, entry)
    const [oldest] = this.#entries.keys()
    if (this.#entries.size > this.#max && oldest !== undefined) this.#entries.delete(oldest)
    return entry.known
  }

  forget(queue: number): void {
    this.#entries.delete(queue)
  }
}
