/**
 * The bench: `npm run bench -- [--all] [--quick] [--pairs N] [--into REPORT] [--profile] [--against MAIN_JS]
 * [--workers N] [case ...]`. `--against` runs another build in place of the yardsticks.
 *
 * Each case measures the real server beside bare yardsticks that do the same work, alternately in one run, because on a
 * shared machine ratios are more reliable than absolute figures. Results are written to bench/results; with --quick, with
 * --profile and for single cases they are only shown. A case that fails is reported, and the others run. See
 * docs/benchmarks.md.
 */
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { caseGroups } from './cases/all-cases.ts'
import { caseTable } from './case-table.ts'
import type { BenchCase } from './contestant.ts'
import { type Machine, thisMachine } from './machine.ts'
import { profileShares, profileSummary } from './profile-summary.ts'
import { Report, reportHead } from './report.ts'
import { runCase, type RunOptions } from './run-case.ts'

/** Node's compiler needs a second or two of load before figures are stable. */
const fullPace = { rounds: 5, durationMs: 1_000, warmUpMs: 1_500 }
const quickPace = { rounds: 1, durationMs: 500, warmUpMs: 1_200 }
const profilePace = { rounds: 2, durationMs: 3_000, warmUpMs: 3_000 }

const resultsDirectory = fileURLToPath(new URL('../../bench/results', import.meta.url))

interface BenchOptions extends RunOptions {
  readonly cases: readonly BenchCase[]
  readonly isSaved: boolean
  /** The report into which the results go. */
  readonly into: string | undefined
}

function optionsOf(argv: readonly string[], machine: Machine): BenchOptions {
  const { values, positionals } = parseArgs({
    args: [...argv],
    allowPositionals: true,
    options: {
      all: { type: 'boolean', default: false },
      quick: { type: 'boolean', default: false },
      pairs: { type: 'string' },
      into: { type: 'string' },
      profile: { type: 'boolean', default: false },
      against: { type: 'string' },
      workers: { type: 'string', default: '2' },
    },
  })
  const pace = values.profile ? profilePace : values.quick ? quickPace : fullPace
  const isWhole = pace === fullPace && positionals.length === 0
  return {
    ...pace,
    cases: casesNamed(positionals, values),
    rounds: values.pairs === undefined ? pace.rounds : integer('pairs', values.pairs, 100),
    workers: integer('workers', values.workers, 8),
    isProfiled: values.profile,
    against: values.against === undefined ? undefined : resolve(values.against),
    // One short round of code that is not compiled yet cannot be compared with targets.
    isJudged: pace === fullPace && values.against === undefined,
    commit: machine.commit,
    isSaved: isWhole || values.into !== undefined,
    into: values.into,
  }
}

function casesNamed(
  names: readonly string[],
  { all, quick }: { readonly all: boolean; readonly quick: boolean },
): readonly BenchCase[] {
  const allCases = caseGroups.flatMap(({ cases }) => cases)
  const unknown = names.filter((name) => !allCases.some((known) => isNamed(known, name)))
  if (unknown.length > 0) {
    const known = allCases.map(({ name }) => name).join(', ')
    throw new Error(`no case ${unknown.join(', ')}: expected any of ${known}`)
  }
  const isOfAll = ({ isLong = false, isExtra = false }: BenchCase): boolean =>
    names.length === 0 && !(quick && isLong) && (all || !isExtra)
  return allCases.filter((known) => isOfAll(known) || names.some((name) => isNamed(known, name)))
}

/** `webhook-*` matches all cases whose names begin with `webhook-`. */
function isNamed(known: BenchCase, name: string): boolean {
  return name.endsWith('*') ? known.name.startsWith(name.slice(0, -1)) : known.name === name
}

function integer(name: string, text: string, max: number): number {
  const value = Number(text)
  if (Number.isInteger(value) && value >= 1 && value <= max) return value
  throw new Error(`--${name} ${text}: expected 1 to ${max}`)
}

async function reportOf(options: BenchOptions, machine: Machine): Promise<Report | undefined> {
  if (!options.isSaved) return undefined
  const place = { directory: resultsDirectory, machine, groups: caseGroups }
  if (options.into === undefined) return Report.begin(place)
  return Report.continued({ ...place, name: options.into })
}

async function main(argv: readonly string[]): Promise<void> {
  const machine = thisMachine()
  const options = optionsOf(argv, machine)
  const report = await reportOf(options, machine)
  process.stdout.write(`${reportHead(machine)}\n`)
  for (const benchCase of options.cases) {
    const { result, profiles } = await runCase(benchCase, options)
    process.stdout.write(`${caseTable(result)}\n`)
    if (result.error !== undefined) process.exitCode = 1
    if (options.isProfiled && result.error === undefined) {
      const shares = profileShares(profiles)
      process.stdout.write(`${profileSummary(shares)}\n`)
      await report?.addProfile({ name: benchCase.name, commit: machine.commit, shares })
    } else {
      await report?.add(result)
    }
  }
  if (report !== undefined) process.stdout.write(`written to ${report.path}\n`)
}

await main(process.argv.slice(2))
