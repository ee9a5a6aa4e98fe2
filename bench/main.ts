/**
 * The bench: `npm run bench -- --help` shows its options.
 *
 * Each case measures the real server beside bare yardsticks that do the same work, alternately in one run, because on a
 * shared machine ratios are more reliable than absolute figures. Results are written to bench/results; with --quick, with
 * --profile and for single cases they are only shown. A case that fails is reported, and the others run. See
 * docs/know/benchmarks.md.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Baseline } from './baseline.ts'
import {
  type BenchArguments,
  BenchArgumentError,
  benchHelp,
  readBenchArguments,
} from './bench-arguments.ts'
import { caseGroups } from './cases/all-cases.ts'
import { caseTable } from './case-table.ts'
import type { BenchCase } from './contestant.ts'
import { flameGraph } from './flame-graph.ts'
import { flameTree } from './flame-tree.ts'
import type { CpuProfile } from './inspected-process.ts'
import { type Machine, thisMachine } from './machine.ts'
import { profileShares, profileSummary } from './profile-summary.ts'
import { Report, reportHead, savedReport } from './report.ts'
import { withResults } from './results-page.ts'
import { type CaseRun, runCase, type RunOptions } from './run-case.ts'
import { runCheck } from './run-check.ts'

/** Node's compiler needs a second or two of load before figures are stable. */
const fullPace = { rounds: 5, durationMs: 1_000, warmUpMs: 1_500 }
const quickPace = { rounds: 1, durationMs: 500, warmUpMs: 1_200 }
const profilePace = { rounds: 2, durationMs: 3_000, warmUpMs: 3_000 }

const resultsDirectory = fileURLToPath(new URL('../../bench/results', import.meta.url))
const pageFile = fileURLToPath(new URL('../../docs/know/benchmarks.md', import.meta.url))

interface BenchOptions extends RunOptions {
  readonly cases: readonly BenchCase[]
  readonly isSaved: boolean
  /** The report into which the results go. */
  readonly into: string | undefined
}

function optionsOf(given: BenchArguments, machine: Machine): BenchOptions {
  const { isProfiled, isQuick, isSelection, pairs, into, workers, cases, against } = given
  const pace = isQuick ? quickPace : isProfiled ? profilePace : fullPace
  return {
    ...pace,
    cases,
    rounds: pairs ?? pace.rounds,
    workers,
    isProfiled,
    isQuick,
    against: against === undefined ? undefined : resolve(against),
    // One short round of code that is not compiled yet cannot be compared with targets.
    isJudged: pace === fullPace && against === undefined,
    commit: machine.commit,
    isSaved: (pace === fullPace && !isSelection) || into !== undefined,
    into,
  }
}

async function reportOf(options: BenchOptions, machine: Machine): Promise<Report | undefined> {
  if (!options.isSaved) return undefined
  const place = { directory: resultsDirectory, machine, groups: caseGroups }
  if (options.into === undefined || options.into === 'new') return Report.begin(place)
  return Report.continued({ ...place, name: options.into })
}

async function main(argv: readonly string[]): Promise<void> {
  const given = readBenchArguments(argv, caseGroups)
  if (given.isHelpAsked) {
    process.stdout.write(benchHelp(caseGroups))
    return
  }
  if (given.page !== undefined) return writePage(given.page)
  const machine = thisMachine()
  const options = optionsOf(given, machine)
  const report = await reportOf(options, machine)
  process.stdout.write(`${reportHead(machine)}\n`)
  if (given.isCheck) {
    const baseline = await Baseline.read(join(resultsDirectory, 'baseline.json'))
    const isPassed = await runCheck({ ...options, baseline, isUpdate: given.isUpdate })
    if (!isPassed) process.exitCode = 1
    return
  }
  for (const benchCase of options.cases) {
    const run = await runCase(benchCase, options)
    process.stdout.write(`${caseTable(run.result)}\n`)
    if (run.result.error !== undefined) process.exitCode = 1
    await reportRun(run, report, { ...given, commit: machine.commit })
  }
  if (report !== undefined) process.stdout.write(`written to ${report.path}\n`)
}

/** Shows the profile of a case, or adds its result to the report. */
async function reportRun(
  { result, profiles }: CaseRun,
  report: Report | undefined,
  options: Pick<BenchArguments, 'isProfiled' | 'isFlame'> & { readonly commit: string },
): Promise<void> {
  const { isProfiled, isFlame, commit } = options
  const { name, error } = result
  if (!isProfiled || error !== undefined) {
    await report?.add(result)
    return
  }
  const shares = profileShares(profiles)
  process.stdout.write(`${profileSummary(shares)}\n`)
  await report?.addProfile({ name, commit, shares })
  if (isFlame) await writeFlame(name, commit, profiles)
}

/** Puts the results of a report into the page about benchmarks. */
async function writePage(name: string): Promise<void> {
  const report = await savedReport(resultsDirectory, name)
  await writeFile(pageFile, withResults(await readFile(pageFile, 'utf8'), report))
  process.stdout.write(`written to ${pageFile}\n`)
}

async function writeFlame(
  name: string,
  commit: string,
  profiles: readonly CpuProfile[],
): Promise<void> {
  const root = flameTree(profiles)
  const seconds = (root.us / 1e6).toFixed(1)
  const title = `${name}: where the workers spend their time (${seconds} s, at ${commit})`
  const file = join(resultsDirectory, `flame-${name}.svg`)
  await mkdir(resultsDirectory, { recursive: true })
  await writeFile(file, flameGraph({ title, root }))
  process.stdout.write(`written to ${file}\n`)
}

// Servers end in listeners of 'exit', which a signal alone does not call.
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(130))

try {
  await main(process.argv.slice(2))
} catch (error) {
  if (!(error instanceof BenchArgumentError)) throw error
  process.stderr.write(`bench: ${error.message}\n`)
  process.exitCode = 2
}
