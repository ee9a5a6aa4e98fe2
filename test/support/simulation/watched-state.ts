import type { Lane } from '../../../src/delivery/lanes/lane.ts'
import { DeliveryState, type DeliveryStateOptions } from '../../../src/delivery/state.ts'

export interface FailedUpdate {
  readonly updateId: number
  readonly retryAfterMs: number | undefined
  /** Whether it has not failed before. */
  readonly isFirst: boolean
}

export interface StateWatch {
  taken(): void
  failed(failed: FailedUpdate): void
}

/** Reports everything that the dispatcher takes, and every failure. */
export class WatchedState extends DeliveryState {
  readonly #watch: StateWatch

  constructor(options: DeliveryStateOptions, watch: StateWatch) {
    super(options)
    this.#watch = watch
  }

  override take(...args: Parameters<DeliveryState['take']>): Lane | undefined {
    const lane = super.take(...args)
    if (lane !== undefined) this.#watch.taken()
    return lane
  }

  override failed(...args: Parameters<DeliveryState['failed']>): void {
    const [lane, retryAfterMs] = args
    if (lane.first !== undefined) {
      const { updateId } = lane.first
      this.#watch.failed({ updateId, retryAfterMs, isFirst: lane.failures === 0 })
    }
    super.failed(...args)
  }
}
