/**
 * Reloads one at a time. One that is asked for while another runs comes behind it, since what it is to read may have
 * changed after that one had read it; all that are asked for meanwhile are one.
 */
export class Reloads {
  readonly #reload: () => Promise<void>
  #running: Promise<void> | undefined
  #queued: Promise<void> | undefined

  constructor(reload: () => Promise<void>) {
    this.#reload = reload
  }

  /** Resolves when a reload that began after this call is done, rejects where it failed. */
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
  // Whoever asked for that one hears of it.
}
