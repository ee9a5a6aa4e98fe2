/**
 * Sends the calls that this worker has answered to the owner of shard 0, which stores them (access/audit-trail.ts).
 *
 *   record --> waiting --> one batch at a time --> stored, and then the response goes out
 *                 ^                  |
 *                 +--- not stored, after 1 s
 *
 * A response waits until its call is stored, so no answered change is missing after a crash. It does not wait while shard 0
 * is away: the change is made, and all other bots would wait for that shard. The calls of that time are in memory.
 */
import { type Clock, sleep } from '../kit/clock.ts'
import type { RecordedCall } from '../shard/records/audit-record.ts'
import type { Counters, Log } from '../kit/surroundings.ts'

interface Waiting {
  readonly call: RecordedCall
  /** Lets the response go out. */
  readonly goOn: () => void
}

/** A response waits this long for its call to be stored. Chosen: a sync takes milliseconds, a worker that restarts half a second. */
export const auditWaitMs = 1_000
/** Calls that could not be stored are sent again after this time. */
export const auditAgainMs = 1_000
/** A batch has this many calls: at most 1 KiB each, and a body between workers may have 64 KiB. */
export const auditBatchMax = 60
/** This many calls wait while shard 0 is away; past that the oldest are lost. Chosen: 1 MB, and hours of the changes of a fleet. */
export const auditWaitingMax = 1_000

export class AuditWriter {
  readonly #clock: Clock
  readonly #counters: Pick<Counters, 'add'>
  readonly #log: Pick<Log, 'warn'>
  /** Stores calls. A call that is stored twice is there once. Rejects with a PostboteError. */
  readonly #store: (calls: readonly RecordedCall[]) => Promise<void>
  readonly #ending = new AbortController()
  #waiting: Waiting[] = []
  #writing: Promise<void> | undefined
  /** The last batch could not be stored, or took too long. */
  #isBehind = false
  #lost = 0

  constructor(
    clock: Clock,
    counters: Pick<Counters, 'add'>,
    log: Pick<Log, 'warn'>,
    store: (calls: readonly RecordedCall[]) => Promise<void>,
  ) {
    this.#clock = clock
    this.#counters = counters
    this.#log = log
    this.#store = store
  }

  /** Resolves when the call survives a power loss, or when its response should wait no longer. Never rejects. */
  record(call: RecordedCall): Promise<void> {
    if (this.#waiting.length >= auditWaitingMax) this.#lose()
    return new Promise((resolve) => {
      let isOver = this.#isBehind
      const timer = isOver ? undefined : this.#clock.after(auditWaitMs, () => late())
      const goOn = (): void => {
        if (isOver) return
        isOver = true
        timer?.cancel()
        resolve()
      }
      const late = (): void => {
        this.#isBehind = true
        goOn()
      }
      if (isOver) resolve()
      this.#waiting.push({ call, goOn })
      this.#writing ??= this.#writeAll()
    })
  }

  /** Sends what waits once more, and ends. */
  async close(): Promise<void> {
    this.#ending.abort()
    await this.#writing
    if (this.#waiting.length > 0) this.#noteLost(this.#waiting.length)
  }

  async #writeAll(): Promise<void> {
    const { signal } = this.#ending
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, auditBatchMax)
      const wasEnding = signal.aborted
      try {
        await this.#store(batch.map(({ call }) => call))
        this.#isBehind = false
      } catch {
        // Whatever it was, the responses must go out, and the calls are not lost yet.
        this.#isBehind = true
        this.#waiting.unshift(...batch)
      }
      for (const { goOn } of batch) goOn()
      if (!this.#isBehind) continue
      if (wasEnding) break
      await sleep(this.#clock, auditAgainMs, signal)
    }
    this.#writing = undefined
  }

  #lose(): void {
    this.#waiting.shift()?.goOn()
    this.#noteLost(1)
  }

  #noteLost(count: number): void {
    if (this.#lost === 0)
      this.#log.warn({}, 'calls could not be recorded for the audit, and are lost')
    this.#lost += count
    this.#counters.add('audit_lost', count)
  }
}
