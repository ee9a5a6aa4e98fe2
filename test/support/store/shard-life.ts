import type { Counters } from '../../../src/kit/surroundings.ts'
import type { HistogramName } from '../../../src/kit/histograms.ts'
import type { MetricName } from '../../../src/kit/metrics.ts'
import type { Operation } from '../../../src/shard/operations.ts'
import { Shard } from '../../../src/shard/shard.ts'
import type { Store } from '../../../src/store/store.ts'
import type { FakeClock } from '../kit/fake-clock.ts'

/** Counters whose values a test can read. */
export class TestCounters implements Counters {
  readonly counts: Partial<Record<MetricName, number>> = {}
  /** The times of each histogram, one for each observation. */
  readonly times: Partial<Record<HistogramName, number[]>> = {}

  observe(name: HistogramName, timeMs: number, count = 1): void {
    const times = (this.times[name] ??= [])
    for (let nth = 0; nth < count; nth++) times.push(timeMs)
  }

  add(name: MetricName, amount: number): void {
    this.counts[name] = (this.counts[name] ?? 0) + amount
  }
}

/** A shard with its surroundings, which a test observes or replaces. */
export class ShardLife {
  readonly shard: Shard
  readonly committed: Operation[] = []
  readonly logged: string[] = []
  /** The details of each logged line. */
  readonly details: Readonly<Record<string, unknown>>[] = []
  /** The updates that were reported as missing, as `bot: count`; undefined if none may be. */
  missing: string[] | undefined
  resets = 0
  isDiskWell = true
  onCommitted: (operations: readonly Operation[]) => void = () => undefined
  onReset: () => void = () => undefined

  constructor(store: Store, clock: FakeClock, idempotencyKeysPerDayMax?: number) {
    this.shard = new Shard({
      index: 3,
      store,
      clock,
      log: {
        error: (details, message) => {
          this.logged.push(message)
          this.details.push({ ...details })
        },
        info: () => undefined,
      },
      onCommitted: (operations) => {
        this.committed.push(...operations)
        this.onCommitted(operations)
      },
      onReset: () => {
        this.resets++
        this.onReset()
      },
      onMissing: (queue, count) => {
        if (this.missing === undefined) throw new Error(`${count} updates of ${queue} are missing`)
        this.missing.push(`${queue}: ${count}`)
      },
      probe: () => Promise.resolve(this.isDiskWell),
      ...(idempotencyKeysPerDayMax === undefined ? {} : { idempotencyKeysPerDayMax }),
    })
  }
}

/** Waits for a promise while the clock advances as far as its timers require. */
export async function whileTimePasses<T>(clock: FakeClock, promise: Promise<T>): Promise<T> {
  const waiting = new Set([promise])
  const mark = (): void => waiting.clear()
  promise.then(mark, mark)
  for (let round = 0; round < 1_000 && waiting.size > 0; round++) await clock.advance(5)
  return promise
}
