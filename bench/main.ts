/**
 * The bench: `npm run bench -- [--quick] [--pairs N] [--profile] [--workers N] [case ...]`.
 *
 * Each case measures the real server beside bare yardsticks that do the same work, alternately in one run, since the
 * absolute figures of a shared machine say little and ratios do. Results go to bench/results; with --quick or
 * --profile they are only shown. See docs/benchmarks.md.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { alternate, type CaseResult } from './alternate.ts'
import { allCases } from './cases/all-cases.ts'
import type { BenchCase, CaseContext } from './contestant.ts'
import { thisMachine } from './machine.ts'
import { profileSummary } from './profile-summary.ts'
import { caseTable, reportText, writeReport } from './report.ts'

/** How long all of it takes. Node's compiler needs a second or two of load before figures stay. */
interface Pace {
  readonly rounds: number
  readonly durationMs: number
  readonly warmUpMs: number
}

const fullPace: Pace = { rounds: 5, durationMs: 2_500, warmUpMs: 2_000 }
const quickPace: Pace = { rounds: 1, durationMs: 500, warmUpMs: 1_200 }
const profilePace: Pace = { rounds: 2, durationMs: 3_000, warmUpMs: 3_000 }

interface BenchOptions extends Pace {
  readonly cases: readonly BenchCase[]
  readonly workers: number
  readonly isProfiled: boolean
  readonly isSaved: boolean
  /** One short round of code that is not yet compiled says nothing about targets. */
  readonly isJudged: boolean
}

const resultsDirectory = fileURLToPath(new URL('../../bench/results', import.meta.url))

function optionsOf(argv: readonly string[]): BenchOptions {
  const { values, positionals } = parseArgs({
    args: [...argv],
    allowPositionals: true,
    options: {
      quick: { type: 'boolean', default: false },
      pairs: { type: 'string' },
      profile: { type: 'boolean', default: false },
      workers: { type: 'string', default: '2' },
    },
  })
  const pace = values.profile ? profilePace : values.quick ? quickPace : fullPace
  return {
    ...pace,
    cases: casesNamed(positionals, values.quick),
    rounds: values.pairs === undefined ? pace.rounds : integer('pairs', values.pairs, 100),
    workers: integer('workers', values.workers, 8),
    isProfiled: values.profile,
    isJudged: pace === fullPace,
    isSaved: pace === fullPace && positionals.length === 0,
  }
}

function casesNamed(names: readonly string[], isQuick: boolean): readonly BenchCase[] {
  const unknown = names.filter((name) => !allCases.some((known) => isNamed(known, name)))
  if (unknown.length > 0) {
    const known = allCases.map(({ name }) => name).join(', ')
    throw new Error(`no case ${unknown.join(', ')}: expected any of ${known}`)
  }
  return allCases.filter(
    (known) =>
      (names.length === 0 && !(isQuick && known.isLong === true)) ||
      names.some((name) => isNamed(known, name)),
  )
}

/** `webhook-*` stands for all cases that begin so. */
function isNamed(known: BenchCase, name: string): boolean {
  return name.endsWith('*') ? known.name.startsWith(name.slice(0, -1)) : known.name === name
}

function integer(name: string, text: string, max: number): number {
  const value = Number(text)
  if (Number.isInteger(value) && value >= 1 && value <= max) return value
  throw new Error(`--${name} ${text}: expected 1 to ${max}`)
}

async function runCase(benchCase: BenchCase, options: BenchOptions): Promise<CaseResult> {
  const directory = await mkdtemp(join(tmpdir(), 'postbote-bench-'))
  const closings: (() => Promise<void>)[] = [() => rm(directory, { recursive: true, force: true })]
  const context: CaseContext = {
    directory,
    workers: options.workers,
    isProfiled: options.isProfiled,
    atEnd: (close) => closings.push(close),
  }
  try {
    return await alternate(benchCase, await benchCase.open(context), options)
  } finally {
    for (const close of closings.toReversed()) await close()
  }
}

async function main(argv: readonly string[]): Promise<void> {
  const options = optionsOf(argv)
  const machine = thisMachine()
  const results: CaseResult[] = []
  process.stdout.write(`${reportText(machine, [])}\n`)
  for (const benchCase of options.cases) {
    const judged = options.isJudged ? benchCase : { ...benchCase, targets: [] }
    const result = await runCase(judged, options)
    results.push(result)
    process.stdout.write(`${caseTable(result)}\n`)
    if (options.isProfiled) process.stdout.write(`${profileSummary(result.profiles)}\n`)
  }
  if (!options.isSaved) return
  const path = await writeReport(resultsDirectory, machine, results)
  process.stdout.write(`written to ${path}\n`)
}

await main(process.argv.slice(2))
