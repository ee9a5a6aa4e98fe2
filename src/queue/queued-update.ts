/** A pending update of a queue, wherever it lies: a window's entry, or one that was read for itself. */
import type { StoredUpdate } from '../shard/stored.ts'
import type { PendingUpdate } from '../webhook/delivery-source.ts'

export interface QueuedUpdate extends PendingUpdate {
  readonly typeNumber: number
  readonly acceptedAtS: number
}

/** Whether it is one that a queue has given out; the webhook layer knows them by less. */
export function isQueued(update: PendingUpdate): update is QueuedUpdate {
  return 'typeNumber' in update && 'acceptedAtS' in update
}

/**
 * One that was read from disk and is not in the window. It keeps the bytes of its own record alive and of no
 * other; they are put into wire form when they are sent.
 */
export class DiskEntry implements QueuedUpdate {
  readonly #stored: StoredUpdate

  constructor(stored: StoredUpdate) {
    this.#stored = stored
  }

  get updateId(): number {
    return this.#stored.updateId
  }

  get typeNumber(): number {
    return this.#stored.typeNumber
  }

  get acceptedAtS(): number {
    return this.#stored.acceptedAtS
  }

  get expiresAtS(): number {
    return this.#stored.expiresAtS
  }

  get orderingKey(): string {
    return this.#stored.orderingKey
  }

  get textBytes(): number {
    return this.#stored.text.length
  }

  body(): Buffer {
    const { updateId, text } = this.#stored
    const head = `{"update_id":${updateId},`
    const body = Buffer.allocUnsafe(head.length + text.length + 1)
    body.write(head, 0, 'latin1')
    body.set(text, head.length)
    body[body.length - 1] = 0x7d
    return body
  }
}
