/**
 * A value that is not there yet and goes to one receiver. It does for a waiting poll what a promise does, in a fifth of the
 * memory: a promise with its resolver, and `then` with its reactions, are eight objects, and thousands of polls wait at a
 * time (docs/benchmarks.md, "What a waiting poll keeps").
 *
 * It is a thenable, so that it can also be awaited and returned to a promise.
 */

/** Gets the value of a `Later`. An object and not a function, because a closure for each would take memory again. */
export interface Receiver<T> {
  /** Called once. A promise may reject. */
  receive(value: T | Promise<T>): void
}

export class Later<T> implements PromiseLike<T> {
  #receiver: Receiver<T> | undefined
  /** The value, if it came before the receiver. */
  #early: { readonly value: T | Promise<T> } | undefined

  /** Gives the value to the receiver. Call this once. */
  settle(value: T | Promise<T>): void {
    if (this.#receiver === undefined) this.#early = { value }
    else this.#receiver.receive(value)
  }

  /** Sets the only receiver. It gets the value in this call if the value is there already. */
  sendTo(receiver: Receiver<T>): void {
    this.#receiver = receiver
    if (this.#early !== undefined) receiver.receive(this.#early.value)
  }

  // oxlint-disable-next-line unicorn/no-thenable -- it is there to be awaited
  then<Fulfilled = T, Rejected = never>(
    fulfilled?: ((value: T) => Fulfilled | PromiseLike<Fulfilled>) | null,
    rejected?: ((error: unknown) => Rejected | PromiseLike<Rejected>) | null,
  ): Promise<Fulfilled | Rejected> {
    const promise = new Promise<T>((resolve) => this.sendTo({ receive: resolve }))
    return promise.then(fulfilled, rejected)
  }
}
