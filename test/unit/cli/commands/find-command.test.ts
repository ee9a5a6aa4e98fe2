import assert from 'node:assert/strict'
import { test } from 'node:test'
import { commandTable } from '../../../../src/modules/command-table.ts'
import {
  commandsAsked,
  commandsInGroup,
  commandsNamed,
  findCommand,
} from '../../../../src/cli/commands/find-command.ts'
import { commandGroups, shortHelp } from '../../../../src/modules/command-groups.ts'
import { groupsHelp, helpText } from '../../../../src/cli/commands/help-text.ts'
import { parseCommand } from '../../../../src/cli/commands/parse-command.ts'
import { configOf } from '../../../../src/cli/commands/run-command.ts'

test('a command of one word or two is found, and the rest are its arguments', () => {
  for (const [argv, name, rest] of [
    [['serve', '--local'], 'serve', ['--local']],
    [['nodes'], 'nodes', []],
    [['node', 'drain', 'a'], 'node drain', ['a']],
    [['bots', 'list', '--json'], 'bots list', ['--json']],
    [['push', '4711', '{}'], 'push', ['4711', '{}']],
  ] as const) {
    const found = findCommand(commandTable, argv)
    assert.deepEqual([found.row.name, found.argv], [name, rest])
  }
})

test('a group alone, with options at most, is its usual command if it has one, and its help stays that of all', () => {
  for (const [argv, rest] of [
    [['dead-letters'], []],
    [['dead-letters', '--json'], ['--json']],
  ] as const) {
    const found = findCommand(commandTable, argv)
    assert.deepEqual([found.row.name, found.argv], ['dead-letters reasons', rest])
  }
  assert.ok(commandsAsked(commandTable, ['dead-letters', '--help']).length > 1)
  assert.throws(() => findCommand(commandTable, ['dead-letters', 'lst']), /did you mean list\?$/)
  assert.throws(() => findCommand(commandTable, ['dead-letters', '4711']), /: expected reasons, /)
})

test('both words of a command may come as one argument, and no argument is lost then', () => {
  const found = findCommand(commandTable, ['bots list', '--json'])
  assert.deepEqual([found.row.name, found.argv], ['bots list', ['--json']])
})

test('an unknown command is an error that lists the commands, or those of the group', () => {
  assert.throws(() => findCommand(commandTable, ['srve']), {
    message: 'unknown command "srve", did you mean serve? See postbote help',
  })
  for (const argv of [['database'], ['database', 'drop'], ['database', '--dir', 'x']]) {
    assert.throws(() => findCommand(commandTable, argv), {
      message: 'database: expected init, import or export',
    })
  }
  assert.throws(() => findCommand(commandTable, ['node', 'drian']), {
    message: 'node: expected drain or undrain, did you mean drain?',
  })
})

test('a plural for a singular, a turned pair and the name of a group lead to the command that is meant', () => {
  for (const [argv, end] of [
    [['bot', 'list'], ', did you mean bots list? See postbote help'],
    [['node', 'list'], 'expected drain or undrain, did you mean nodes?'],
    [['webhooks', 'show', '7003'], ', did you mean webhook show? See postbote help'],
    [['dead-letter', 'list'], ', did you mean dead-letters list? See postbote help'],
    [['event'], ', did you mean events? See postbote help'],
    [['list', 'bots'], ', did you mean bots list? See postbote help'],
    [['show', 'bot', '7003'], ', did you mean bots show? See postbote help'],
    [['clustr'], ', did you mean cluster? See postbote help'],
    [['hepl'], ', did you mean help? See postbote help'],
    [['verison'], ', did you mean version? See postbote help'],
    [['cluster'], 'database export, nodes, node drain or node undrain'],
    [['updates', 'push'], ', did you mean postbote push?'],
    [['statsu'], ', did you mean summary? See postbote help'],
    [
      ['--dir=secret', 'bots', 'list'],
      '--dir: options come after the command, as in postbote summary --dir',
    ],
    [['x'.repeat(100_000)], `unknown command "${'x'.repeat(100)}...". See postbote help`],
    [['\u001b[2J\u009b'], 'unknown command "\\u001b[2J\\u009b". See postbote help'],
  ] as const) {
    assert.throws(
      () => findCommand(commandTable, argv),
      (error: Error) => error.message.endsWith(end) || assert.fail(error.message),
    )
  }
})

test('each command is in one group, and the groups fit a terminal, a line each', () => {
  for (const { name } of commandTable) {
    const groups = commandGroups.filter(({ words }) => words.includes(name.replace(/ .*/, '')))
    assert.equal(groups.length, 1, name)
  }
  const lines = groupsHelp(shortHelp, 'groups and options').split('\n')
  for (const line of lines) assert(line.length <= 80, line)
  // Below the line of the command itself.
  assert(groupsHelp(shortHelp, 'groups').trimEnd().split('\n').length < 24)
  const bots = commandsInGroup(commandTable, 'webhook').map(({ name }) => name)
  assert(bots.includes('pause') && bots.includes('webhook set'))
})

test('the short help begins with what an operator in trouble types, each a command that exists', () => {
  const help = groupsHelp(shortHelp, 'groups')
  assert(help.indexOf('Something is wrong?') < help.indexOf('postbote help server'))
  const typed = [...help.matchAll(/^ {2}postbote (.*?) {2}/gm)].map(([, words = '']) => words)
  assert.equal(typed.length, shortHelp.firstCommands.length + commandGroups.length)
  for (const words of typed.map((each) => each.replace('BOT_ID', '4711').split(' '))) {
    if (words[0] === 'help') assert(commandsAsked(commandTable, words.slice(1)).length > 0)
    else {
      const { row, argv } = findCommand(commandTable, words)
      assert(row.kind === 'parsed')
      parseCommand(row, argv, configOf)
    }
  }
})

test('the help of a command whose synopsis is written by hand has its options, too', () => {
  const help = helpText(commandsNamed(commandTable, ['verify']), commandTable, 80)
  assert.match(help, /^Usage: postbote verify \[--shard N\]/)
  assert.match(help, /^ {2}--shard <N,\.\.\.> {2}Number of a shard/m)
})

test('the second word of a command alone is an error that names the commands with it', () => {
  for (const [word, advice] of [
    ['register', 'bots register'],
    ['types', 'server types'],
    ['history', 'server history'],
    ['cancel', 'replays cancel'],
    ['rotate', 'keys rotate'],
    ['drop', 'one of dead-letters drop, updates drop'],
  ] as const) {
    assert.throws(
      () => findCommand(commandTable, [word, '4711']),
      (error: Error) => error.message.includes(`, did you mean ${advice}?`),
    )
  }
})

test('names of commands are unique, and none is also the first word of others', () => {
  const names = commandTable.map(({ name }) => name)
  assert.equal(new Set(names).size, names.length)
  const groups = names.filter((name) => name.includes(' ')).map((name) => name.split(' ')[0])
  assert.deepEqual(
    groups.filter((group) => names.includes(group ?? '')),
    [],
  )
})

test('the help of all commands lists each, and that of a group or a command only its own', () => {
  const all = helpText([], commandTable)
  for (const { name } of commandTable) assert.match(all, new RegExp(`^  postbote ${name} ?`, 'm'))
  assert.match(all, /^Usage:\n {2}postbote serve \[options\] {31}runs the server\n/)
  for (const line of all.split('\n')) assert.ok(line.length <= 118, line)
  const group = helpText(commandsNamed(commandTable, ['bots', '--help']), commandTable)
  assert.match(group, /postbote bots list/)
  assert.doesNotMatch(group, /postbote serve/)
  const serve = helpText(commandsNamed(commandTable, ['serve', '--help']), commandTable)
  assert.match(serve, /--http-port/)
  const repair = helpText(commandsNamed(commandTable, ['repair', '--help']), commandTable)
  assert.doesNotMatch(repair, /--http-port/)
  assert.match(helpText(commandsNamed(commandTable, ['bots', 'list']), commandTable), /--after <N>/)
})

test('help is asked for all commands, a group or one command, and not for one that does not exist', () => {
  assert.deepEqual(asked('--help'), [])
  assert.deepEqual(asked(), [])
  assert.deepEqual(asked('serve', '--help'), ['serve'])
  assert.deepEqual(asked('push', '4711', '--help'), ['push'])
  assert.deepEqual(asked('bots', 'list', '--limit', '1', '-h'), ['bots list'])
  assert(asked('bots', '--help').length > 3)
  assert.throws(() => asked('nosuch', '--help'), { message: /^unknown command "nosuch"/ })
  assert.throws(() => asked('bots', 'lst', '--help'), { message: /did you mean list\?$/ })
})

test('no line of the help is wider than the terminal', () => {
  for (const width of [72, 100, 160]) {
    for (const rows of [
      [],
      commandsNamed(commandTable, ['serve']),
      commandsNamed(commandTable, ['node']),
    ]) {
      for (const line of helpText(rows, commandTable, width).split('\n')) {
        // A synopsis or an address is not broken.
        assert(
          line.length <= width ||
            !line
              .trimStart()
              .slice(0, width - 6)
              .includes(' ') ||
            /^  (?:postbote|--)/.test(line),
          line,
        )
      }
    }
  }
})

function asked(...argv: readonly string[]): readonly string[] {
  return commandsAsked(commandTable, argv).map(({ name }) => name)
}
