import type {
  DeliverySource,
  LostReason,
  LostUpdate,
  PendingUpdate,
  UpdateHolder,
} from '../../../src/delivery/delivery-source.ts'

export interface UpdateToPush {
  readonly updateId: number
  readonly orderingKey?: string
  readonly expiresAtS?: number
}

/** A queue for tests of the dispatcher: a sorted array that is read immediately or (`isSlow`) by a promise. */
export class ArraySource implements DeliverySource {
  updates: PendingUpdate[] = []
  readonly removed: { readonly updateId: number; readonly reason: 'delivered' | LostReason }[] = []
  /** The updates that the dispatcher gave up, with its reasons. */
  readonly lost: LostUpdate[] = []
  removeCalls = 0
  isSlow = false
  onRemove: () => void = () => undefined
  holder: UpdateHolder | undefined

  push(...updates: readonly UpdateToPush[]): void {
    for (const { updateId, orderingKey = 'key', expiresAtS = 4_000_000_000 } of updates) {
      const body = Buffer.from(`{"update_id":${updateId},"message":{"text":"${orderingKey}"}}`)
      this.updates.push({
        updateId,
        orderingKey,
        expiresAtS,
        textBytes: body.length,
        body: () => body,
      })
    }
  }

  heldBy(holder: UpdateHolder | undefined): void {
    this.holder = holder
  }

  pendingAfter(
    afterId: number,
    limit: number,
  ): readonly PendingUpdate[] | Promise<readonly PendingUpdate[]> {
    const start = this.updates.findIndex((update) => update.updateId > afterId)
    const page = start < 0 ? [] : this.updates.slice(start, start + limit)
    if (!this.isSlow) return page
    return new Promise((resolve) => setImmediate(resolve, page))
  }

  remove(updates: readonly PendingUpdate[]): void {
    this.#remove(updates.map(({ updateId }) => ({ updateId, reason: 'delivered' })))
  }

  addDeadLetters(lost: readonly LostUpdate[]): void {
    this.lost.push(...lost)
    this.#remove(lost.map(({ update, reason }) => ({ updateId: update.updateId, reason })))
  }

  #remove(removals: ArraySource['removed']): void {
    this.removeCalls++
    const gone = new Set(removals.map(({ updateId }) => updateId))
    this.updates = this.updates.filter((update) => !gone.has(update.updateId))
    this.removed.push(...removals)
    this.onRemove()
  }

  /** Resolves when nothing is pending. */
  empty(): Promise<void> {
    return new Promise((resolve) => {
      this.onRemove = () => {
        if (this.updates.length === 0) resolve()
      }
      this.onRemove()
    })
  }
}
