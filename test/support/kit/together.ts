/**
 * Synchronizes members that go through the same steps, with an action between two steps that runs once for all of them:
 *
 *     await together.meet(async () => { server = await server.restart() })
 *
 * The last member to arrive runs the action, then all continue. A member that fails leaves, and the others no longer
 * wait for it.
 */
export class Together {
  #members: number
  #waiting: PromiseWithResolvers[] = []
  #step: (() => Promise<void>) | undefined

  constructor(members: number) {
    this.#members = members
  }

  meet(step: () => Promise<void>): Promise<void> {
    this.#step = step
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject })
      this.#goOnIfComplete()
    })
  }

  leave(): void {
    this.#members--
    this.#goOnIfComplete()
  }

  #goOnIfComplete(): void {
    if (this.#waiting.length < this.#members || this.#step === undefined) return
    const waiting = this.#waiting
    const step = this.#step
    this.#waiting = []
    this.#step = undefined
    step().then(
      () => waiting.forEach(({ resolve }) => resolve()),
      (error: unknown) => waiting.forEach(({ reject }) => reject(error)),
    )
  }
}

interface PromiseWithResolvers {
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}
