/**
 * The bench: `npm run bench -- [--quick] [--pairs N] [--profile DIR] [case ...]`.
 *
 * Each case measures the real server beside bare yardsticks that do the same work, alternately in one run, since the
 * absolute figures of a shared machine say little and ratios do. Results go to bench/results; with --quick or
 * --profile they are only shown. See docs/benchmarks.md.
 */
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
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

interface BenchOptions {
  readonly cases: readonly BenchCase[]
  readonly rounds: number
  readonly durationMs: number
  readonly warmUpMs: number
  readonly profileDirectory: string | undefined
  readonly isSaved: boolean
}

const resultsDirectory = fileURLToPath(new URL('../../bench/results', import.meta.url))
const workers = 2

function optionsOf(argv: readonly string[]): BenchOptions {
  const { values, positionals } = parseArgs({
    args: [...argv],
    allowPositionals: true,
    options: {
      quick: { type: 'boolean', default: false },
      pairs: { type: 'string' },
      profile: { type: 'string' },
    },
  })
  const unknown = positionals.filter((name) => !allCases.some((known) => known.name === name))
  if (unknown.length > 0) {
    const names = allCases.map(({ name }) => name).join(', ')
    throw new Error(`no case ${unknown.join(', ')}: expected any of ${names}`)
  }
  const pairs = Number(values.pairs ?? (values.quick ? 1 : 5))
  if (!Number.isInteger(pairs) || pairs < 1 || pairs > 100) {
    throw new Error(`--pairs ${values.pairs}: expected 1 to 100`)
  }
  const isProfiled = values.profile !== undefined
  return {
    cases: allCases.filter(({ name }) => positionals.length === 0 || positionals.includes(name)),
    rounds: isProfiled ? 3 : pairs,
    durationMs: values.quick ? 800 : 2_500,
    warmUpMs: values.quick ? 1_000 : 1_500,
    profileDirectory: values.profile,
    isSaved: !values.quick && !isProfiled && positionals.length === 0,
  }
}

async function runCase(benchCase: BenchCase, options: BenchOptions): Promise<CaseResult> {
  const directory = await mkdtemp(join(tmpdir(), 'postbote-bench-'))
  const profileDirectory =
    options.profileDirectory && join(options.profileDirectory, benchCase.name)
  if (profileDirectory !== undefined) await mkdir(profileDirectory, { recursive: true })
  const closings: (() => Promise<void>)[] = [() => rm(directory, { recursive: true, force: true })]
  const context: CaseContext = {
    directory,
    workers,
    profileDirectory,
    isAlone: profileDirectory !== undefined,
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
    const result = await runCase(benchCase, options)
    results.push(result)
    process.stdout.write(`${caseTable(result)}\n`)
    if (options.profileDirectory === undefined) continue
    const place = join(options.profileDirectory, benchCase.name)
    process.stdout.write(`${await profileSummary(place)}\n`)
  }
  if (!options.isSaved) return
  const path = await writeReport(resultsDirectory, machine, results)
  process.stdout.write(`written to ${path}\n`)
}

await main(process.argv.slice(2))
