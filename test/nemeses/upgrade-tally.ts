/**
 * What became of the requests of clients during an upgrade, by its steps. A request that was under way while nobody listened
 * counts there, whenever it began.
 */
import type { Attempt } from './load.ts'

/** One step of an upgrade, such as a reload. */
export interface UpgradeStep {
  readonly name: string
  /** Whether the only server ends and starts again, so that some requests must fail. */
  readonly isDown: boolean
  readonly startMs: number
  requests: number
  failed: number
  /** Pairs that a stream has left over, as it must when the server ends it. */
  left: number
  longestPushMs: number
  /** By reason: how many requests, and when the first was answered, from the start of the step. */
  readonly failures: Map<string, { count: number; readonly firstMs: number }>
}

export class UpgradeTally {
  readonly steps: UpgradeStep[] = []

  begin(name: string, { isDown = false, nowMs = performance.now() } = {}): void {
    this.steps.push({
      name,
      isDown,
      startMs: nowMs,
      requests: 0,
      failed: 0,
      left: 0,
      longestPushMs: 0,
      failures: new Map(),
    })
  }

  note({ what, startMs, failure, isLeft = false }: Attempt, nowMs = performance.now()): void {
    const step = this.#stepOf(startMs)
    if (step === undefined) return
    step.requests++
    if (isLeft) step.left++
    // A poll waits as long as it likes, and a stream lasts.
    if (what.startsWith('push')) step.longestPushMs = Math.max(step.longestPushMs, nowMs - startMs)
    if (failure === undefined) return
    step.failed++
    const [fromMs, toMs] = [startMs, nowMs].map((ms) => Math.round(ms - step.startMs))
    if (!step.isDown) console.log(`${step.name}: ${what}: ${failure} (${fromMs} to ${toMs} ms)`)
    const reason = `${what}: ${failure}`
    const same = step.failures.get(reason)
    if (same === undefined) step.failures.set(reason, { count: 1, firstMs: toMs ?? 0 })
    else same.count++
  }

  /** The step of a request that began at this time and is over now. */
  #stepOf(startMs: number): UpgradeStep | undefined {
    const down = this.steps.findLastIndex(({ isDown }) => isDown)
    const endMs = this.steps[down + 1]?.startMs ?? Number.POSITIVE_INFINITY
    return down !== -1 && startMs < endMs ? this.steps[down] : this.steps.at(-1)
  }
}
