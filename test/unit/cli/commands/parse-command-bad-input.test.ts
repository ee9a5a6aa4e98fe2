/** What each command of the table says to input that it cannot use: one sentence, with the exit code of such input. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type CommandRow,
  isServerOption,
  type ParsedCommand,
} from '../../../../src/cli/commands/command-row.ts'
import { BenchArgumentError, readBenchArguments } from '../../../../bench/bench-arguments.ts'
import { caseGroups } from '../../../../bench/cases/all-cases.ts'
import { refused } from '../../../../src/config/config-values.ts'
import { commandTable } from '../../../../src/modules/command-table.ts'
import { runInProcess } from '../../../support/programs/run-in-process.ts'

const parsed = commandTable.filter((row: CommandRow) => row.kind === 'parsed')

/** Texts of which most kinds of values take none. */
const bad = [
  '',
  'x',
  '-1',
  '1e400',
  '\u001b[2J\u009b31m\u202e',
  'x'.repeat(100_000),
  '1700000000000',
]

/** One line without a character that a terminal acts upon, and not longer than people read. */
function assertSentence(err: string, what: string): void {
  assert.match(err, /^postbote: [^\p{C}]+\n$/u, what)
  assert(err.length < 900, `${what}: ${err.length} characters`)
  assert.doesNotMatch(err, / at .*:\d+:\d+|Error:/, what)
}

/** Returns arguments that the command takes up to the one that is tried. */
function wordsBefore(row: ParsedCommand, nth: number): readonly string[] {
  const good = ['4711', '7', '0123456789abcdef', 'bash', 'x', 'none', '{}']
  return row.arguments
    .slice(0, nth)
    .map(({ kind, name }) => good.find((text) => kind.parse(text) !== refused) ?? assert.fail(name))
}

async function assertRefused(argv: readonly string[], what: string): Promise<void> {
  const { code, out, err } = await runInProcess([...argv])
  assert.deepEqual([code, out], [2, ''], `${what}: ${err.slice(0, 300)}`)
  assertSentence(err, what)
}

test('an argument that is absent or cannot be used is one sentence of each command', async () => {
  for (const row of parsed) {
    const words = row.name.split(' ')
    for (const [nth, { name, kind }] of row.arguments.entries()) {
      const before = [...words, ...wordsBefore(row, nth)]
      if (name.startsWith('<')) await assertRefused(before, `${row.name} without ${name}`)
      for (const text of bad.filter(
        (each) => !each.startsWith('-') && kind.parse(each) === refused,
      )) {
        const rest = wordsBefore(row, row.arguments.length).slice(nth + 1)
        await assertRefused([...before, text, ...rest], `${row.name} ${name} ${text.slice(0, 20)}`)
      }
    }
    const all = wordsBefore(row, row.arguments.length)
    await assertRefused([...words, ...all, 'one-more'], `${row.name} with one argument too many`)
  }
})

test('an option that is unknown, or has a value that cannot be used, is one sentence of each command', async () => {
  for (const row of parsed) {
    const words = [...row.name.split(' '), ...wordsBefore(row, row.arguments.length)]
    await assertRefused([...words, '--nosuch\u001b[2J=secret'], `${row.name} --nosuch`)
    for (const option of row.options.filter((each) => !isServerOption(each))) {
      const { name, kind } = option
      if (kind.placeholder !== undefined) {
        await assertRefused([...words, `--${name}`], `${row.name} --${name} without a value`)
      }
      for (const text of bad.filter((each) => kind.parse(each) === refused)) {
        await assertRefused(
          [...words, `--${name}=${text}`],
          `${row.name} --${name}=${text.slice(0, 20)}`,
        )
      }
    }
  }
})

test('a command that reads the options of the server itself says of each in one sentence what is wrong', async () => {
  const raw = commandTable.filter((row) => row.kind === 'raw' && row.printsOwnHelp !== true)
  assert(raw.some(({ name }) => name === 'serve'))
  for (const { name, options } of raw) {
    const words = name.split(' ')
    await assertRefused([...words, '--nosuch\u001b[2J=secret'], `${name} --nosuch`)
    await assertRefused([...words, `--${'x'.repeat(100_000)}`], `${name} with a long option`)
    await assertRefused([...words, '--local', 'one-more'], `${name} one-more`)
    await assertRefused([...words, '--no-local', 'one-more'], `${name} one-more`)
    await assertRefused([...words, '--nosuch', 'its-value'], `${name} --nosuch its-value`)
    for (const { name: option, kind } of options) {
      if (kind.placeholder !== undefined) {
        await assertRefused([...words, `--${option}`], `${name} --${option} without a value`)
      }
      for (const text of bad.filter((each) => kind.parse(each) === refused)) {
        await assertRefused([...words, `--${option}=${text}`], `${name} --${option}`)
      }
    }
  }
})

test('the bench says in one sentence what is wrong with its arguments', () => {
  for (const argv of [
    ['no-such-case'],
    ['\u001b[2J\u009b'],
    ['x'.repeat(100_000)],
    ['--nosuch\u001b[2J'],
    [`--${'x'.repeat(100_000)}`],
    ['--pairs'],
    ['--pairs='],
    ['--pairs', 'x'.repeat(100_000)],
    ['--workers', '\u001b[2J'],
  ]) {
    assert.throws(
      () => readBenchArguments(argv, caseGroups),
      (error) => {
        assert(error instanceof BenchArgumentError)
        assertSentence(`postbote: ${error.message}\n`, argv.join(' ').slice(0, 30))
        return true
      },
    )
  }
})

test('a command whose reader has ended says nothing of it, and its exit code is that of the result', async () => {
  const closed = { env: {}, input: '', isClosed: true }
  for (const { name } of parsed) {
    const { code, err } = await runInProcess([...name.split(' '), '--help'], closed)
    assert.deepEqual([code, err], [0, ''], name)
  }
  for (const argv of [
    [],
    ['help', 'all'],
    ['serve', '--help'],
    ['version'],
    ['completion', 'bash'],
  ]) {
    const { code, err } = await runInProcess(argv, closed)
    assert.deepEqual([code, err], [0, ''], argv.join(' '))
  }
  const { code, err } = await runInProcess(['bots', 'show', 'x'], closed)
  assert.equal(code, 2)
  assertSentence(err, 'bots show x')
})

test('the help of each command is there on a terminal of 20 columns, and without a terminal', async () => {
  for (const { name } of parsed) {
    const narrow = await runInProcess([...name.split(' '), '--help'], {
      env: {},
      input: '',
      columns: 20,
    })
    const wide = await runInProcess(['help', ...name.split(' ')])
    assert.deepEqual([narrow.code, narrow.err, wide.code, wide.err], [0, '', 0, ''], name)
    assert.match(narrow.out, new RegExp(name.split(' ')[0] ?? ''))
  }
})
