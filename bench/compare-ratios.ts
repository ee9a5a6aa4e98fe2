/**
 * The regression gate: the CPU time of an operation, as a multiple of what a bare program uses for the same work in the
 * same run, beside that multiple in the committed baseline. Absolute figures say too much about the machine.
 */
import type { CaseResult } from './case-result.ts'

/** A case of the gate and its yardstick. */
export interface CheckedCase {
  readonly name: string
  readonly against: string
}

export interface BaselineRatio extends CheckedCase {
  readonly cpuRatio: number
  /** The commit that was measured. */
  readonly commit: string
}

export interface RatioChange extends CheckedCase {
  readonly before: number | undefined
  readonly now: number | undefined
  readonly verdict: 'passed' | 'worse' | 'failed' | 'not in the baseline'
  /** Why a failed case has no ratio. */
  readonly error?: string
}

/** A ratio above this multiple of the baseline's is a regression. */
export const worseAbove = 1.2

/** Not `push-to-poll`: its CPU time depends on how many updates share a sync, so on the load of the disk (3.97 to 6.11 in four runs). */
export const checkedCases: readonly CheckedCase[] = [
  { name: 'ingest', against: 'bare leveldown' },
  { name: 'ingest-idempotent', against: 'bare leveldown' },
  { name: 'push', against: 'bare node:http and leveldown' },
  { name: 'poll-empty', against: 'bare node:http' },
  { name: 'poll-100', against: 'bare node:http' },
  { name: 'webhook', against: 'bare undici' },
  { name: 'webhook-key', against: 'bare undici' },
]

/**
 * Compares a case with the baseline.
 *
 * @param checked - which yardstick counts.
 * @param result - what was measured.
 * @param baseline - the ratios of the committed baseline; one of another yardstick is ignored.
 */
export function compareRatios(
  { name, against }: CheckedCase,
  result: Pick<CaseResult, 'rows' | 'error'>,
  baseline: readonly BaselineRatio[],
): RatioChange {
  const before = baseline.find((each) => each.name === name && each.against === against)?.cpuRatio
  const now = result.rows.find((row) => row.name === against)?.cpuRatio
  const compared = { name, against, before, now }
  if (result.error !== undefined) return { ...compared, verdict: 'failed', error: result.error }
  if (now === undefined || !Number.isFinite(now)) {
    return { ...compared, verdict: 'failed', error: `it has no ratio to ${against}` }
  }
  if (before === undefined) return { ...compared, verdict: 'not in the baseline' }
  return { ...compared, verdict: now > worseAbove * before ? 'worse' : 'passed' }
}

/** Returns whether the build may be released, as far as the gate can tell: no case is worse, and none failed. */
export function isPassed(changes: readonly RatioChange[]): boolean {
  return changes.every(({ verdict }) => verdict === 'passed' || verdict === 'not in the baseline')
}

/** Returns the better one of two measurements of a case, because other programs on the machine can only make it worse. */
export function betterOf(first: RatioChange, second: RatioChange): RatioChange {
  if (second.now === undefined || second.verdict === 'failed') return first
  return first.now === undefined || second.now < first.now ? second : first
}
