/**
 * Several that go through the same steps, with something between two steps that happens once for all of them:
 *
 *     await together.meet(async () => { server = await server.restart() })
 *
 * The last to arrive does it, then all go on. Who fails on the way leaves, and the others wait for it no longer.
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
