/**
 * Group commit: while one group is being written, whatever arrives joins the next. One fsync thus serves
 * everybody who arrived during the previous one, and the group grows with the load.
 *
 *   idle --add(waited)--> scheduled (end of this turn of the event loop) --> writing --> idle | scheduled
 *   idle --add(unwaited)-> lingering (up to 20 ms, joined by others)     --> writing
 *
 * All who joined one group share one promise. A failed write fails its group (OUTCOME_UNKNOWN) and everything
 * behind it (STORE_UNAVAILABLE); from then on `add` refuses until `reset`, because the database must not be
 * trusted any more.
 */
import { groupCostMax, groupLingerMs } from '../limits.ts'
import type { Clock, Timer } from '../clock.ts'
import { PostboteError } from '../errors.ts'

class Group<Operation> {
  readonly operations: Operation[] = []
  /** Of all its operations. */
  cost = 0
  readonly done: Promise<void>
  resolve!: () => void
  reject!: (error: unknown) => void

  constructor() {
    this.done = new Promise((resolve, reject) => {
      this.resolve = resolve
      this.reject = reject
    })
    // Nobody has to listen: confirms are not waited for.
    this.done.catch(() => undefined)
  }
}

export interface GroupCommitOptions<Operation> {
  readonly clock: Clock
  /** How much work an operation is, one for a small one: a group is cut where it has enough of it. */
  costOf(operation: Operation): number
  /** Writes one group, synced. Called for one group at a time. */
  write(operations: readonly Operation[]): Promise<void>
  /** Told before anyone who waits for the group, in commit order. */
  onCommitted(operations: readonly Operation[]): void
  onFailed(error: unknown): void
}

export class GroupCommit<Operation> {
  readonly #options: GroupCommitOptions<Operation>
  /** Those that are not being written yet. */
  #groups: Group<Operation>[] = []
  #writing: Group<Operation> | undefined
  #status: 'idle' | 'lingering' | 'scheduled' | 'writing' | 'failed' = 'idle'
  #linger: Timer | undefined
  #waited = false
  #failure: unknown
  #idleWaiters: (() => void)[] = []

  constructor(options: GroupCommitOptions<Operation>) {
    this.#options = options
  }

  /** Adds operations that belong together to one group; resolves once that group is synced. */
  add(operations: readonly Operation[], waited: boolean): Promise<void> {
    if (this.#status === 'failed') return Promise.reject(unavailable(this.#failure))
    let group = this.#groups.at(-1)
    if (group === undefined || group.cost >= groupCostMax) {
      group = new Group()
      this.#groups.push(group)
    }
    for (const operation of operations) {
      group.operations.push(operation)
      group.cost += this.#options.costOf(operation)
    }
    this.#waited ||= waited
    this.#schedule()
    return group.done
  }

  /** Resolves when nothing is waiting or being written, or the writing has failed. */
  async flush(): Promise<void> {
    if (this.#status === 'idle' || this.#status === 'failed') return
    this.#waited = true
    this.#schedule()
    await new Promise<void>((resolve) => this.#idleWaiters.push(resolve))
  }

  /** Accepts operations again after a failure. */
  reset(): void {
    this.#status = 'idle'
    this.#failure = undefined
  }

  #schedule(): void {
    if (this.#status !== 'idle' && this.#status !== 'lingering') return
    if (this.#waited) {
      this.#linger?.cancel()
      this.#status = 'scheduled'
      this.#options.clock.soon(() => void this.#writeNext())
    } else if (this.#status === 'idle') {
      this.#status = 'lingering'
      this.#linger = this.#options.clock.after(groupLingerMs, () => {
        this.#status = 'scheduled'
        void this.#writeNext()
      })
    }
  }

  /** Fails what is being written and everything behind it, because some write has failed. */
  fail(error: unknown): void {
    if (this.#status === 'failed') return
    const writing = this.#writing
    const waiting = this.#groups
    this.#linger?.cancel()
    this.#writing = undefined
    this.#groups = []
    this.#status = 'failed'
    this.#failure = error
    this.#waited = false
    writing?.reject(new PostboteError('OUTCOME_UNKNOWN', { cause: error }))
    for (const group of waiting) group.reject(unavailable(error))
    this.#wakeIdleWaiters()
    this.#options.onFailed(error)
  }

  async #writeNext(): Promise<void> {
    if (this.#status !== 'scheduled') return
    const group = this.#groups.shift()
    if (group === undefined) return
    this.#status = 'writing'
    this.#writing = group
    if (this.#groups.length === 0) this.#waited = false
    try {
      await this.#options.write(group.operations)
    } catch (error) {
      if (this.#writing === group) this.fail(error)
      return
    }
    // Failed meanwhile by another write: what this one has reached is as uncertain.
    if (this.#writing !== group) return
    this.#writing = undefined
    this.#options.onCommitted(group.operations)
    group.resolve()
    this.#status = 'idle'
    if (this.#groups.length > 0) {
      this.#schedule()
    } else {
      this.#wakeIdleWaiters()
    }
  }

  #wakeIdleWaiters(): void {
    const waiters = this.#idleWaiters
    this.#idleWaiters = []
    for (const wake of waiters) wake()
  }
}

function unavailable(cause: unknown): PostboteError {
  return new PostboteError('STORE_UNAVAILABLE', { cause })
}
