/**
 * A thread that takes work off the event loop. It starts with the first task and ends when it is idle.
 *
 * Its failures never propagate: if too many tasks wait, the thread fails, or it is closed, `run` returns undefined and
 * the caller manages without it.
 */
import { Piscina } from 'piscina'

export interface HelperThreadOptions {
  /** The URL of the entry file. */
  readonly filename: string
  /** The maximum number of tasks that wait or run. */
  readonly pendingMax: number
  readonly idleMs: number
  /** What the thread has as `workerData`, cloned when it starts. */
  readonly data?: unknown
  /** Called with every failure of the thread, but not if it is full or closed. */
  readonly onFailure: (error: unknown) => void
}

/** One thread that runs tasks of one kind. */
export class HelperThread<Task, Result> {
  readonly #options: HelperThreadOptions
  #piscina: Piscina<Task, Result> | undefined
  #pending = 0
  #isClosed = false

  constructor(options: HelperThreadOptions) {
    this.#options = options
  }

  /** The number of live threads: 0 or 1. */
  get threads(): number {
    return this.#piscina?.threads.length ?? 0
  }

  /**
   * Runs a task in the thread. Never rejects.
   *
   * @param taskOf - creates the task; called only if there is room, and may throw
   * @param signal - gives the task up, and ends the thread if it has begun; its reason goes to `onFailure`
   */
  async run(taskOf: () => Task, signal?: AbortSignal): Promise<Result | undefined> {
    if (this.#isClosed || this.#pending >= this.#options.pendingMax) return undefined
    this.#piscina ??= this.#start()
    this.#pending++
    try {
      return await this.#piscina.run(taskOf(), { signal: signal ?? null })
    } catch (error) {
      if (!this.#isClosed) this.#options.onFailure(signal?.aborted === true ? signal.reason : error)
      return undefined
    } finally {
      this.#pending--
    }
  }

  /** Ends the thread. Tasks that it has not begun resolve to undefined. */
  async close(): Promise<void> {
    this.#isClosed = true
    const piscina = this.#piscina
    this.#piscina = undefined
    await piscina?.close({ force: true })
  }

  /** Ends the thread at once, with what it does. All tasks resolve to undefined. */
  async destroy(): Promise<void> {
    this.#isClosed = true
    const piscina = this.#piscina
    this.#piscina = undefined
    await piscina?.destroy()
  }

  #start(): Piscina<Task, Result> {
    const { filename, idleMs, onFailure, data } = this.#options
    const piscina = new Piscina<Task, Result>({
      filename,
      minThreads: 0,
      maxThreads: 1,
      idleTimeout: idleMs,
      workerData: data,
    })
    // A thread may die between two tasks. Without a listener, that error would end the process.
    piscina.on('error', onFailure)
    return piscina
  }
}
