/** The arguments of the bench: how they are read, and its help. */
import { parseArgs } from 'node:util'
import { adviceFor } from '../src/kit/text/advice-for.ts'
import { visible } from '../src/kit/text/visible.ts'
import { checkedCases } from './compare-ratios.ts'
import type { BenchCase, CaseGroup } from './contestant.ts'

/** Arguments that cannot be used; the message says what is expected. */
export class BenchArgumentError extends Error {}

export interface BenchArguments {
  /** All cases of the run, in their order. */
  readonly cases: readonly BenchCase[]
  readonly isHelpAsked: boolean
  readonly isQuick: boolean
  readonly isProfiled: boolean
  /** Whether flame graphs of the profiles are written. */
  readonly isFlame: boolean
  /** Whether the ratios are compared with the baseline. */
  readonly isCheck: boolean
  /** Whether they become the baseline. */
  readonly isUpdate: boolean
  /** Whether the cases were named. */
  readonly isSelection: boolean
  /** The number of rounds, if it was given. */
  readonly pairs: number | undefined
  /** The report into which the results go. */
  readonly into: string | undefined
  /** The report whose results go into docs/know/benchmarks.md; nothing is measured. */
  readonly page: string | undefined
  /** The main.js of another build, which is measured in place of the yardsticks. */
  readonly against: string | undefined
  readonly workers: number
}

const options = {
  all: { type: 'boolean', default: false },
  quick: { type: 'boolean', default: false },
  pairs: { type: 'string' },
  into: { type: 'string' },
  page: { type: 'string' },
  profile: { type: 'boolean', default: false },
  flame: { type: 'boolean', default: false },
  check: { type: 'boolean', default: false },
  update: { type: 'boolean', default: false },
  against: { type: 'string' },
  workers: { type: 'string', default: '2' },
  help: { type: 'boolean', short: 'h', default: false },
} as const

/** The paths that every update takes, drawn if --flame has no case. */
const hotCases: readonly string[] = ['ingest', 'push', 'poll-100', 'webhook', 'webhook-key']

/**
 * Reads the arguments.
 *
 * @throws BenchArgumentError if an option or a case is unknown, or a number is out of range.
 */
export function readBenchArguments(
  argv: readonly string[],
  groups: readonly CaseGroup[],
): BenchArguments {
  const { values, positionals } = parsed(argv)
  refuseWrongPairs(values)
  const names = positionals.length > 0 ? positionals : defaultNames(values)
  return {
    cases: values.help ? [] : casesNamed(names, values, groups),
    isHelpAsked: values.help,
    isQuick: values.quick,
    isProfiled: values.profile || values.flame,
    isFlame: values.flame,
    isCheck: values.check,
    isUpdate: values.update,
    isSelection: positionals.length > 0,
    pairs: values.pairs === undefined ? undefined : integer('pairs', values.pairs, 100),
    into: values.into,
    page: values.page,
    against: values.against,
    workers: integer('workers', values.workers, 8),
  }
}

/** Returns the text of `npm run bench -- --help`. */
export function benchHelp(groups: readonly CaseGroup[]): string {
  const cases = groups.flatMap((group) => [
    `  ${group.title}`,
    ...group.cases.map(({ name, title, isExtra }) => {
      const extra = isExtra === true ? ' (extra)' : ''
      return `    ${name.padEnd(24)} ${title}${extra}`
    }),
  ])
  return `Usage: npm run bench -- [options] [case ...]

Measures the server beside bare programs that do the same work. bench/README.md explains the cases.
Without a case, all of them run but the extra ones. 'webhook-*' names all cases that begin so, and peers all cases beside other queues.

  --all          runs the extra cases, too
  --quick        one short round: does it run? The figures are not representative
  --pairs N      number of rounds, 1 to 100
  --workers N    number of workers of the server, 1 to 8; 2 without it
  --into REPORT  puts the results into a report that exists, such as 2026-11-21-abc1234, or makes one: new
  --page REPORT  only writes the table of docs/know/benchmarks.md from a report that exists
  --against FILE measures another build instead of the programs beside it: its dist/src/main.js
  --profile      profiles the CPU of the server only, without the programs beside it
  --flame        profiles, too, and draws bench/results/flame-CASE.svg; without a case: ${hotCases.join(', ')}
  --check        compares ratios with bench/results/baseline.json; exits with 1 if a case is over 20 % worse or failed
                 (npm run bench:check); without a case: ${checkedNames.join(', ')}
  --update       with --check: what is measured becomes the baseline
  --help         prints this text

Cases:
${cases.join('\n')}
`
}

const checkedNames = checkedCases.map(({ name }) => name)

type Parsed = ReturnType<typeof parseArgs<{ allowPositionals: true; options: typeof options }>>

function parsed(argv: readonly string[]): Parsed {
  try {
    return parseArgs({ args: [...argv], allowPositionals: true, options })
  } catch (error) {
    // parseArgs says in its first sentence which option is unknown or has no value.
    if (error instanceof TypeError) {
      const [first = ''] = error.message.split('. ')
      throw new BenchArgumentError(shownStart(first), { cause: error })
    }
    throw error
  }
}

type Values = Parsed['values']

function defaultNames({ flame, check }: Values): readonly string[] {
  return flame ? hotCases : check ? checkedNames : []
}

function refuseWrongPairs({ check, update, quick, all, profile, flame, ...values }: Values): void {
  if (update && !check) throw new BenchArgumentError('--update: expected --check with it')
  const isOther = quick || all || profile || flame || values.against !== undefined
  if (check && (isOther || values.into !== undefined)) {
    throw new BenchArgumentError('--check: expected only --update, --pairs or --workers with it')
  }
}

function casesNamed(
  given: readonly string[],
  { all, quick, check }: Pick<Values, 'all' | 'quick' | 'check'>,
  groups: readonly CaseGroup[],
): readonly BenchCase[] {
  const allCases = groups
    .flatMap(({ cases }) => cases)
    .filter(({ name }) => !check || checkedNames.includes(name))
  const names = given.flatMap((name) => namesOf(name, groups))
  const unknown = names.filter((name) => !allCases.some((known) => isNamed(known, name)))
  if (unknown.length > 0) {
    const named = [...(check ? [] : groups), ...allCases].map(({ name }) => name)
    const known = [...new Set(named)]
    const first = shownStart(unknown[0] ?? '')
    throw new BenchArgumentError(`no case ${first}${adviceFor(first, known) || '.'} See --help`)
  }
  const isOfAll = ({ isLong = false, isExtra = false }: BenchCase): boolean =>
    names.length === 0 && !(quick && isLong) && (all || !isExtra)
  return allCases.filter((known) => isOfAll(known) || names.some((name) => isNamed(known, name)))
}

/** The name of a group means all of its cases, unless a case has that name, too. */
function namesOf(name: string, groups: readonly CaseGroup[]): readonly string[] {
  if (groups.some(({ cases }) => cases.some((known) => known.name === name))) return [name]
  return groups.find((group) => group.name === name)?.cases.map((known) => known.name) ?? [name]
}

/** `webhook-*` matches all cases whose names begin with `webhook-`. */
function isNamed(known: BenchCase, name: string): boolean {
  return name.endsWith('*') ? known.name.startsWith(name.slice(0, -1)) : known.name === name
}

function integer(name: string, text: string, max: number): number {
  const value = Number(text)
  if (Number.isInteger(value) && value >= 1 && value <= max) return value
  throw new BenchArgumentError(`--${name}: expected 1 to ${max}, got ${shownStart(text)}`)
}

/** An error shows this many characters of what was given. */
const shownLengthMax = 100

function shownStart(text: string): string {
  return visible(text.slice(0, shownLengthMax), '?')
}
