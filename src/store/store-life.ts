/**
 * The life cycle of a store, the same for every implementation:
 *
 *     closed --open()--> opening --ok--> open --close()--> closing --> closed
 *                           \--failed--> closed
 *
 * Calls are admitted only while the store is open, and `close` waits until all admitted calls have left. A call to
 * raw leveldown during or after its close is a segmentation fault, so this does not rely on careful callers. A closed
 * store can be reopened.
 */

import { PostboteError } from '../errors.ts'

type State = 'closed' | 'opening' | 'open' | 'closing'

export interface StoreLifeSteps {
  /** The store's name in error messages. */
  readonly name: string
  readonly open: () => Promise<void>
  readonly close: () => Promise<void>
}

export class StoreLife {
  readonly #steps: StoreLifeSteps
  #state: State = 'closed'
  #openFailure: unknown
  /** The operation in progress in the states `opening` and `closing`. */
  #transition: Promise<void> = Promise.resolve()
  #callsUnderWay = 0
  #onLastLeft: (() => void) | undefined

  constructor(steps: StoreLifeSteps) {
    this.#steps = steps
  }

  async open(): Promise<void> {
    if (this.#state === 'closing') await this.#transition.catch(() => undefined)
    switch (this.#state) {
      case 'open':
        return
      case 'opening':
        return this.#transition
      case 'closing':
      case 'closed':
        this.#state = 'opening'
        this.#transition = this.#open()
        return this.#transition
    }
  }

  async close(): Promise<void> {
    if (this.#state === 'opening') await this.#transition.catch(() => undefined)
    switch (this.#state) {
      case 'closed':
        return
      case 'closing':
        return this.#transition
      case 'opening':
      case 'open':
        this.#state = 'closing'
        this.#transition = this.#close()
        return this.#transition
    }
  }

  /**
   * Admits a call: returns undefined, and the caller must call `leave` exactly once. Otherwise returns the reason for
   * the refusal.
   */
  enter(): Error | undefined {
    if (this.#state === 'open') {
      this.#callsUnderWay++
      return undefined
    }
    return new PostboteError('STORE_UNAVAILABLE', {
      cause: new Error(
        `expected the store ${this.#steps.name} to be open, but it is ${this.#state}`,
        {
          cause: this.#openFailure,
        },
      ),
    })
  }

  leave(): void {
    this.#callsUnderWay--
    if (this.#callsUnderWay === 0) this.#onLastLeft?.()
  }

  async #open(): Promise<void> {
    try {
      await this.#steps.open()
      this.#openFailure = undefined
      this.#state = 'open'
    } catch (error) {
      this.#openFailure = error
      this.#state = 'closed'
      throw error
    }
  }

  async #close(): Promise<void> {
    try {
      if (this.#callsUnderWay > 0) {
        await new Promise<void>((resolve) => {
          this.#onLastLeft = resolve
        })
        this.#onLastLeft = undefined
      }
      await this.#steps.close()
    } finally {
      this.#state = 'closed'
    }
  }
}
