import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CommandCall } from '../../../../src/cli/commands/command-call.ts'
import { commandTable } from '../../../../src/modules/command-table.ts'
import type { ParsedCommand } from '../../../../src/cli/commands/command-row.ts'
import { commandHelp } from '../../../../src/cli/commands/help-text.ts'
import { parseCommand } from '../../../../src/cli/commands/parse-command.ts'
import { type Config, ConfigError, parseConfig } from '../../../../src/config/config.ts'
import { onOff, oneOf, wholeNumber } from '../../../../src/config/config-values.ts'
import { optionTable } from '../../../../src/config/config-options.ts'

const idArgument = { name: '<bot_id>', kind: wholeNumber(100, 999), sentence: 'The bot.' } as const
const moreArgument = { name: '[more]', kind: wholeNumber(1, 9), sentence: 'More.' } as const
const limitOption = {
  name: 'limit',
  kind: wholeNumber(1, 50),
  default: '20',
  sentence: 'At most this many.',
} as const
const wordOption = { name: 'word', kind: oneOf(['a', 'b']), sentence: 'A word.' } as const
const allOption = { name: 'all', kind: onOff, sentence: 'All of them.' } as const

const row: ParsedCommand = {
  kind: 'parsed',
  name: 'things list',
  sentence: 'lists things',
  arguments: [idArgument, moreArgument],
  options: [
    limitOption,
    wordOption,
    allOption,
    optionTable.dir,
    optionTable.local,
    optionTable.blockCidrs,
  ],
  run: async () => undefined,
}

function configOf(argv: readonly string[]): Config {
  return parseConfig({ argv, env: {}, readFile: () => '{}' })
}

function call(...argv: readonly string[]): CommandCall {
  return parseCommand(row, argv, configOf)
}

function problemOf(...argv: readonly string[]): string {
  try {
    call(...argv)
  } catch (error) {
    assert(error instanceof ConfigError)
    return error.message
  }
  return assert.fail(`accepted: ${argv.join(' ')}`)
}

test('an option that has only the name of one of the server has values of its own', () => {
  const typeOption = { name: 'update-type', kind: oneOf(['message']), sentence: 'A type.' } as const
  const filtered = { ...row, options: [typeOption, optionTable.dir] }
  const given = parseCommand(filtered, ['100', '--update-type', 'message'], configOf)
  assert.equal(given.get(typeOption), 'message')
  assert.deepEqual(given.config().updateTypes, [])
})

test('arguments and options have the values of their kinds, and defaults where they are not given', () => {
  const given = call('100', '7', '--limit=3', '--word', 'b', '--all')
  assert.deepEqual(
    [given.need(idArgument), given.get(moreArgument), given.need(limitOption)],
    [100, 7, 3],
  )
  assert.deepEqual([given.get(wordOption), given.has(allOption)], ['b', true])
  const bare = call('100')
  assert.deepEqual(
    [bare.get(moreArgument), bare.need(limitOption), bare.get(wordOption), bare.has(allOption)],
    [undefined, 20, undefined, false],
  )
})

test('options of the server reach its parser, with repetitions and negations', () => {
  const config = call(
    '--dir',
    '/there',
    '100',
    '--no-local',
    '--block-cidr',
    '10.0.0.0/8',
    '--block-cidr=192.0.2.0/24',
  ).config()
  assert.deepEqual(
    [config.dir, config.local, config.blockCidrs],
    ['/there', false, ['10.0.0.0/8', '192.0.2.0/24']],
  )
  assert.equal(call('100', '--local').config().local, true)
  assert.equal(call('100').config().dir, './data')
})

test('a command with one argument says so', () => {
  const one = { ...row, arguments: [idArgument] }
  assert.throws(() => parseCommand(one, ['100', '1'], configOf), {
    message: /expected one argument besides options/,
  })
})

test('an error names the argument and what is expected', () => {
  for (const [argv, expected] of [
    [[], 'things list: expected <bot_id>, a whole number from 100 to 999; see --help'],
    [['99'], '<bot_id>: expected a whole number from 100 to 999, got "99"'],
    [['100', '10'], '[more]: expected a whole number from 1 to 9, got "10"'],
    [['100', '1', '2'], 'things list: expected at most 2 arguments besides options; see --help'],
    [['100', '--limit'], '--limit: expected a whole number from 1 to 50 after it, got no value'],
    [['100', '--limit', 'x'], '--limit: expected a whole number from 1 to 50, got "x"'],
    [['100', '--word', 'c'], '--word: expected one of a, b, got "c"'],
    [['100', '--limt', '3'], '--limt: unknown option, did you mean --limit?; see --help'],
    [['100', '-x'], '-x: unknown option; see --help'],
    [
      ['100', '--no-all'],
      '--no-all: unknown option, did you mean one of --all, --local?; see --help',
    ],
  ] as const) {
    assert.equal(problemOf(...argv), expected)
  }
})

test('an error never shows the text after an unknown option', () => {
  const problem = problemOf('100', '--kee-file=s3cret')
  assert.doesNotMatch(problem, /s3cret/)
  assert.match(problem, /^--kee-file: unknown option/)
})

test('the help shows the arguments and options with what is expected', () => {
  const help = commandHelp(row, 80).replace(/\s+/g, ' ')
  assert.match(help, /^Usage: postbote things list \[options\] <bot_id> \[more\] Lists things\./)
  assert.match(
    help,
    /--limit <N> At most this many\. Expected: a whole number from 1 to 50\. Default: 20\./,
  )
  assert.doesNotMatch(help, /--no-local/)
})

test('the help of each command of the table fits', () => {
  const parsed = commandTable.filter((each) => each.kind === 'parsed')
  assert(parsed.length > 10)
  for (const each of parsed) {
    const lines = commandHelp(each, 100).split('\n')
    assert.match(lines[0] ?? '', /^Usage: postbote /)
    assert(lines.length < 75, `${each.name} shows its own options: ${lines.length} lines`)
    // A word that is longer than its column is not broken.
    for (const line of lines) assert(line.length <= 110, line)
  }
})

test('a command that takes all options of the server shows its own ones first, and refers to serve', () => {
  const doctor = commandTable.find(({ name }) => name === 'doctor')
  assert(doctor?.kind === 'parsed')
  const help = commandHelp(doctor, 100)
  assert.match(help, /Options:\n {2}--webhook-url /)
  assert.doesNotMatch(help, /--http-port/)
  assert.match(help, /postbote serve --help lists them/)
  assert.equal(parseCommand(doctor, ['--http-port', '1234'], configOf).config().httpPort, 1234)
})

test('an empty number of a shard does not select all shards', () => {
  for (const name of ['verify', 'repair']) {
    const command = commandTable.find((each) => each.name === name)
    assert(command?.kind === 'parsed')
    for (const shard of ['', ',']) {
      assert.throws(() => parseCommand(command, ['--shard', shard], configOf), {
        message: /^--shard: expected a whole number from 0/,
      })
    }
  }
})

test('a unit apart from its number leads to the duration that is meant', () => {
  const audit = commandTable.find(({ name }) => name === 'audit')
  assert(audit?.kind === 'parsed')
  for (const argv of [
    ['--since', '10', 'm'],
    ['--since=10', 'm', 'ago'],
  ]) {
    assert.throws(() => parseCommand(audit, argv, configOf), {
      message: 'audit: expected no argument besides options, did you mean 10m? see --help',
    })
  }
  assert.throws(() => parseCommand(audit, ['m'], configOf), {
    message: 'audit: expected no argument besides options; see --help',
  })
})

test('the error of dead-letters list without a bot names the command for all bots', () => {
  const list = commandTable.find(({ name }) => name === 'dead-letters list')
  assert(list?.kind === 'parsed')
  assert.throws(() => parseCommand(list, [], configOf), /; postbote dead-letters reasons shows/)
})
