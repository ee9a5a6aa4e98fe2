/**
 * Group commit: operations that arrive while one group is being written form the next group. One fsync therefore
 * serves all callers that arrived during the previous one, and groups grow with the load.
 *
 *   idle --add(waited)--> scheduled (end of this turn of the event loop) --> writing --> idle | scheduled
 *   idle --add(unwaited)-> lingering (up to 20 ms, joined by others)     --> scheduled
 *   any --fail--> failed --reset--> idle
 *
 * All callers of one group share one promise. A failed write rejects its group with OUTCOME_UNKNOWN, or with
 * STORE_UNAVAILABLE if the store refused it, and all later groups with STORE_UNAVAILABLE. After that, `add` refuses until `reset`, because the database can no longer be
 * trusted.
 */
import assert from 'node:assert'
import { changesOf } from '../kit/changes-of.ts'
import type { Clock, Timer } from '../kit/clock.ts'
import { PostboteError } from '../kit/errors.ts'
import { WriteRefused } from '../store/store.ts'

type Status = 'idle' | 'lingering' | 'scheduled' | 'writing' | 'failed'

const changed = changesOf<Status>({
  idle: ['lingering', 'scheduled', 'failed'],
  lingering: ['scheduled', 'failed'],
  scheduled: ['writing', 'failed'],
  writing: ['idle', 'failed'],
  failed: ['idle'],
})

class Group<Operation> {
  readonly operations: Operation[] = []
  /** Sum of the costs of its operations. */
  cost = 0
  readonly done: Promise<void>
  resolve: () => void = ignore
  reject: (error: unknown) => void = ignore

  constructor() {
    this.done = new Promise((resolve, reject) => {
      this.resolve = resolve
      this.reject = reject
    })
    // Prevents an unhandled rejection: no caller waits for confirms.
    this.done.catch(ignore)
  }
}

/** What `GroupCommit` needs. */
export interface GroupCommitOptions<Operation> {
  readonly clock: Clock
  /** Returns how much work an operation causes; a small one counts 1. A group takes no more at `groupCostMax`. */
  costOf(operation: Operation): number
  /** Writes one group, synced. Only one call is in progress at any time. */
  write(operations: readonly Operation[]): Promise<void>
  /** Called in commit order, before the promises of the group's callers resolve. */
  onCommitted(operations: readonly Operation[]): void
  /** Called once for a failed write, after its callers were rejected. */
  onFailed(error: unknown): void
}

/**
 * A group for which no caller waits may wait this long for further operations, so that confirms and deletions share a
 * sync. It bounds what a crash may deliver again (docs/know/guarantees.md).
 */
const groupLingerMs = 20
/**
 * A group is closed at this cost, since its encoding and the work after its sync block the event loop: 40 ms for 10,000
 * updates. The throughput is the same with 1,000, 2,000, 4,000 and 10,000.
 */
export const groupCostMax = 2_000

/** Collects operations into groups and writes one group at a time. */
export class GroupCommit<Operation> {
  readonly #options: GroupCommitOptions<Operation>
  /** Groups whose write has not begun. */
  #groups: Group<Operation>[] = []
  #writing: Group<Operation> | undefined
  #status: Status = 'idle'
  #linger: Timer | undefined
  #waited = false
  #failure: unknown
  #idleWaiters: (() => void)[] = []

  constructor(options: GroupCommitOptions<Operation>) {
    this.#options = options
  }

  /**
   * Adds operations to one group. Resolves when that group is synced.
   *
   * @param waited - false if the caller does not wait: the group may then be written up to 20 ms later.
   * @throws PostboteError STORE_UNAVAILABLE (nothing was stored) or OUTCOME_UNKNOWN (the write failed halfway).
   */
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

  /** Resolves when no operation is waiting or being written, or when a write has failed. */
  async flush(): Promise<void> {
    if (this.#status === 'idle' || this.#status === 'failed') return
    this.#waited = true
    this.#schedule()
    await new Promise<void>((resolve) => this.#idleWaiters.push(resolve))
  }

  /** Accepts operations again after a failure. */
  reset(): void {
    this.#to('idle')
    this.#failure = undefined
  }

  #schedule(): void {
    if (this.#status !== 'idle' && this.#status !== 'lingering') return
    if (this.#waited) {
      this.#linger?.cancel()
      this.#to('scheduled')
      this.#options.clock.soon(() => void this.#writeNext())
    } else if (this.#status === 'idle') {
      this.#to('lingering')
      this.#linger = this.#options.clock.after(groupLingerMs, () => {
        this.#to('scheduled')
        void this.#writeNext()
      })
    }
  }

  /** Rejects the group that is being written and all waiting groups, because some write of the shard has failed. */
  fail(error: unknown): void {
    if (this.#status === 'failed') return
    const writing = this.#writing
    const waiting = this.#groups
    this.#linger?.cancel()
    this.#writing = undefined
    this.#groups = []
    this.#to('failed')
    this.#failure = error
    this.#waited = false
    const isRefused = error instanceof WriteRefused
    writing?.reject(
      isRefused ? unavailable(error) : new PostboteError('OUTCOME_UNKNOWN', { cause: error }),
    )
    for (const group of waiting) group.reject(unavailable(error))
    this.#wakeIdleWaiters()
    this.#options.onFailed(error)
  }

  async #writeNext(): Promise<void> {
    if (this.#status !== 'scheduled') return
    const group = this.#groups.shift()
    assert(group !== undefined, 'a write is scheduled only for a group')
    this.#to('writing')
    this.#writing = group
    if (this.#groups.length === 0) this.#waited = false
    try {
      await this.#options.write(group.operations)
    } catch (error) {
      if (this.#writing === group) this.fail(error)
      return
    }
    // Another write failed during this one, and `fail` rejected this group: the outcome of this write is unknown,
    // too.
    if (this.#writing !== group) return
    this.#writing = undefined
    this.#options.onCommitted(group.operations)
    group.resolve()
    this.#to('idle')
    if (this.#groups.length > 0) {
      this.#schedule()
    } else {
      this.#wakeIdleWaiters()
    }
  }

  #to(status: Status): void {
    this.#status = changed(this.#status, status)
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

function ignore(): void {}
