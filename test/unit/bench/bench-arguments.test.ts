import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  BenchArgumentError,
  benchHelp,
  readBenchArguments,
} from '../../../bench/bench-arguments.ts'
import { caseGroups } from '../../../bench/cases/all-cases.ts'
import { checkedCases } from '../../../bench/compare-ratios.ts'
import type { BenchCase, CaseGroup } from '../../../bench/contestant.ts'

function benchCase(name: string, more: Partial<BenchCase> = {}): BenchCase {
  const rest = { operation: 'x', targets: [], open: () => Promise.resolve([]) }
  return { name, title: `the case ${name}`, ...rest, ...more }
}

const groups: readonly CaseGroup[] = [
  {
    name: 'poll',
    title: 'Polls',
    cases: [benchCase('poll'), benchCase('poll-long', { isLong: true })],
  },
  { name: 'webhook', title: 'Webhooks', cases: [benchCase('webhook', { isExtra: true })] },
  {
    name: 'peers',
    title: 'Beside other queues',
    cases: [
      benchCase('peers-push', { isExtra: true }),
      benchCase('peers-webhook', { isExtra: true }),
    ],
  },
]

function namesOf(...argv: readonly string[]): readonly string[] {
  return readBenchArguments(argv, groups).cases.map(({ name }) => name)
}

test('the cases are all but the extra ones, all, or those that are named', () => {
  assert.deepEqual(namesOf(), ['poll', 'poll-long'])
  assert.deepEqual(namesOf('--quick'), ['poll'])
  assert.deepEqual(namesOf('--all'), [
    'poll',
    'poll-long',
    'webhook',
    'peers-push',
    'peers-webhook',
  ])
  assert.deepEqual(namesOf('--quick', 'webhook', 'poll-*'), ['poll-long', 'webhook'])
})

test('the name of a group means all of its cases, unless a case has that name', () => {
  assert.deepEqual(namesOf('peers'), ['peers-push', 'peers-webhook'])
  assert.deepEqual(namesOf('poll'), ['poll'])
})

test('the help lists the options and every case', () => {
  assert.equal(readBenchArguments(['--help', '--quick'], groups).isHelpAsked, true)
  const help = benchHelp(groups)
  for (const option of [
    'all',
    'quick',
    'pairs',
    'workers',
    'into',
    'against',
    'profile',
    'flame',
    'check',
    'update',
    'help',
  ]) {
    assert.ok(help.includes(`  --${option} `), option)
  }
  for (const name of ['poll', 'poll-long', 'webhook'])
    assert.match(help, new RegExp(`^    ${name} `, 'm'))
  assert.match(help, /the case webhook \(extra\)/)
})

test('arguments that cannot be used are errors that say what is expected', () => {
  for (const [argv, message] of [
    [['--quik'], /^Unknown option '--quik'$/],
    [['--pairs'], /--pairs/],
    [['--pairs', '0'], /^--pairs: expected 1 to 100, got 0$/],
    [['--workers', 'two'], /^--workers: expected 1 to 8, got two$/],
    [['--update'], /^--update: expected --check with it$/],
    [['--check', '--quick'], /^--check: expected only --update/],
    [['--check', '--into', 'new'], /^--check: expected only --update/],
    [['--check', 'poll'], /^no case poll[.,].* See --help$/],
    [['pol'], /^no case pol, did you mean poll\? See --help$/],
  ] as const) {
    assert.throws(
      () => readBenchArguments(argv, groups),
      (error) => error instanceof BenchArgumentError && message.test(error.message),
    )
  }
})

test('the gate and the flame graphs have cases of their own', () => {
  assert.deepEqual(
    readBenchArguments(['--check'], caseGroups).cases.map(({ name }) => name),
    checkedCases.map(({ name }) => name),
  )
  const flame = readBenchArguments(['--flame'], caseGroups)
  assert.equal(flame.isProfiled, true)
  assert.equal(flame.cases.length, 5)
  const named = readBenchArguments(['--check', '--update', 'webhook*'], caseGroups)
  assert.deepEqual(
    named.cases.map(({ name }) => name),
    ['webhook', 'webhook-key'],
  )
})
