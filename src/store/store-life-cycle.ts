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
import assert from 'node:assert'
import { PostboteError } from '../kit/errors.ts'
import { changesOf } from '../kit/changes-of.ts'

type State = 'closed' | 'opening' | 'open' | 'closing'

const changed = changesOf<State>({
  closed: ['opening'],
  opening: ['open', 'closed'],
  open: ['closing'],
  closing: ['closed'],
})

export interface StoreLifeSteps {
  /** The store's name in error messages. */
  readonly name: string
  readonly open: () => Promise<void>
  readonly close: () => Promise<void>
}

export class StoreLifeCycle {
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
    // Another caller may close it again meanwhile.
    while (this.#state === 'closing') await this.#transition.catch(() => undefined)
    if (this.#state === 'open') return
    if (this.#state === 'closed') {
      this.#to('opening')
      this.#transition = this.#open()
    }
    await this.#transition
  }

  async close(): Promise<void> {
    while (this.#state === 'opening') await this.#transition.catch(() => undefined)
    if (this.#state === 'closed') return
    if (this.#state === 'open') {
      this.#to('closing')
      this.#transition = this.#close()
    }
    await this.#transition
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
    assert(this.#callsUnderWay > 0, 'only a call that was admitted leaves')
    this.#callsUnderWay--
    if (this.#callsUnderWay === 0) this.#onLastLeft?.()
  }

  async #open(): Promise<void> {
    try {
      await this.#steps.open()
      this.#openFailure = undefined
      this.#to('open')
    } catch (error) {
      this.#openFailure = error
      this.#to('closed')
      throw error
    }
  }

  async #close(): Promise<void> {
    try {
      if (this.#callsUnderWay > 0) {
        assert(this.#onLastLeft === undefined, 'a store is closed once at a time')
        await new Promise<void>((resolve) => {
          this.#onLastLeft = resolve
        })
        this.#onLastLeft = undefined
      }
      await this.#steps.close()
    } finally {
      this.#to('closed')
    }
  }

  #to(state: State): void {
    this.#state = changed(this.#state, state)
  }
}
