/**
 * Runs reloads one at a time. A reload that is requested while another runs starts after it, because its input may have
 * changed since the running one read it. All requests that arrive during one reload share the next one.
 */
export class Reloads {
  readonly #reload: () => Promise<void>
  #running: Promise<void> | undefined
  #queued: Promise<void> | undefined

  constructor(reload: () => Promise<void>) {
    this.#reload = reload
  }

  /** Resolves when a reload that began after this call is done; rejects if that reload failed. */
  request(): Promise<void> {
    if (this.#running === undefined) return this.#run()
    this.#queued ??= this.#running.catch(ignore).then(() => {
      this.#queued = undefined
      return this.#run()
    })
    return this.#queued
  }

  #run(): Promise<void> {
    const running = this.#reload()
    this.#running = running
    const forget = (): void => {
      if (this.#running === running) this.#running = undefined
    }
    running.then(forget, forget)
    return running
  }
}

function ignore(): void {
  // The caller of the earlier reload gets its error.
}
