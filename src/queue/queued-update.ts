/** A pending update of a queue, in one of two forms: an entry of the window or an update read from disk separately. */
import type { StoredUpdate } from '../shard/records/stored-records.ts'
import type { PendingUpdate } from '../delivery/delivery-source.ts'

/** A pending update with the fields that only the queue needs. */
export interface QueuedUpdate extends PendingUpdate {
  readonly typeNumber: number
  readonly acceptedAtS: number
  /** When it was stored, as precisely as it is known. Wall time. */
  readonly storedAtMs: number
}

/** Narrows an update of the webhook layer to the queue's own type. Updates that a queue has returned always have it. */
export function isQueued(update: PendingUpdate): update is QueuedUpdate {
  return 'typeNumber' in update && 'acceptedAtS' in update
}

/**
 * An update that was read from disk and is not in the window. It keeps only the bytes of its own record alive and puts
 * them into wire form when they are sent.
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

  get storedAtMs(): number {
    return this.#stored.acceptedAtS * 1_000
  }

  get expiresAtS(): number {
    return this.#stored.expiresAtS
  }

  get orderingKey(): string {
    return this.#stored.orderingKey
  }

  get traceparent(): string | undefined {
    return this.#stored.traceparent
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
