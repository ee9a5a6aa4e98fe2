/**
 * A thread that takes work off the event loop: started with the first task, ended when idle.
 *
 * It is an aid and never a reason to fail. Where too much waits for it, it fails, or it is closed, `run` gives undefined
 * and the caller does without.
 */
import { Piscina } from 'piscina'

export interface HelperThreadOptions {
  /** Of the entry file. */
  readonly filename: string
  /** Tasks that wait or run. */
  readonly pendingMax: number
  readonly idleMs: number
  /** Told of every failure of the thread; not of a full or closed one. */
  readonly onFailure: (error: unknown) => void
}

export class HelperThread<Task, Result> {
  readonly #options: HelperThreadOptions
  #piscina: Piscina<Task, Result> | undefined
  #pending = 0
  #isClosed = false

  constructor(options: HelperThreadOptions) {
    this.#options = options
  }

  /** Threads that live: one or none. */
  get threads(): number {
    return this.#piscina?.threads.length ?? 0
  }

  /** Never rejects. `taskOf` is called where there is room, and may fail. */
  async run(taskOf: () => Task): Promise<Result | undefined> {
    if (this.#isClosed || this.#pending >= this.#options.pendingMax) return undefined
    this.#piscina ??= this.#start()
    this.#pending++
    try {
      return await this.#piscina.run(taskOf())
    } catch (error) {
      if (!this.#isClosed) this.#options.onFailure(error)
      return undefined
    } finally {
      this.#pending--
    }
  }

  /** Ends the thread; what it has not begun resolves to undefined. */
  async close(): Promise<void> {
    this.#isClosed = true
    const piscina = this.#piscina
    this.#piscina = undefined
    await piscina?.close({ force: true })
  }

  #start(): Piscina<Task, Result> {
    const { filename, idleMs, onFailure } = this.#options
    const piscina = new Piscina<Task, Result>({
      filename,
      minThreads: 0,
      maxThreads: 1,
      idleTimeout: idleMs,
    })
    // A thread that dies between two tasks; unheard, it would end the process.
    piscina.on('error', onFailure)
    return piscina
  }
}
