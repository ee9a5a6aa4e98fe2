/** Runs the regression gate: `npm run bench:check`. */
import type { Baseline } from './baseline.ts'
import { checkTable } from './check-table.ts'
import {
  betterOf,
  type CheckedCase,
  checkedCases,
  compareRatios,
  isPassed,
  type RatioChange,
} from './compare-ratios.ts'
import type { BenchCase } from './contestant.ts'
import { runCase, type RunOptions } from './run-case.ts'

export interface CheckOptions extends RunOptions {
  readonly cases: readonly BenchCase[]
  readonly baseline: Baseline
  /** Whether the results become the baseline. */
  readonly isUpdate: boolean
}

/** Returns whether the build passed; with `isUpdate`, whether every case could be measured. */
export async function runCheck(options: CheckOptions): Promise<boolean> {
  const { cases, baseline, isUpdate, commit } = options
  const changes: RatioChange[] = []
  for (const benchCase of cases) {
    const checked = checkedCases.find(({ name }) => name === benchCase.name)
    if (checked !== undefined) changes.push(await changeOf(benchCase, checked, options))
  }
  process.stdout.write(`\n${checkTable(changes)}`)
  if (!isUpdate) return isPassed(changes)
  await baseline.update(changes, commit)
  return changes.every(({ verdict }) => verdict !== 'failed')
}

/** A case that is worse is measured a second time, because other load on the machine can be the reason. */
async function changeOf(
  benchCase: BenchCase,
  checked: CheckedCase,
  options: CheckOptions,
): Promise<RatioChange> {
  const first = await measured(benchCase, checked, options)
  if (first.verdict !== 'worse' || options.isUpdate) return first
  process.stdout.write(`${checked.name} is worse; it is measured again\n`)
  return betterOf(first, await measured(benchCase, checked, options))
}

async function measured(
  benchCase: BenchCase,
  checked: CheckedCase,
  options: CheckOptions,
): Promise<RatioChange> {
  const { result } = await runCase(benchCase, options)
  const change = compareRatios(checked, result, options.baseline.ratios)
  const { name, now, before, error } = change
  const text = error ?? `${now?.toFixed(2)} x, baseline ${before?.toFixed(2) ?? 'none'}`
  process.stdout.write(`${name}: ${text}\n`)
  return change
}
