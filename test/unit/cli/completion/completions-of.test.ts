import assert from 'node:assert/strict'
import { test } from 'node:test'
import { optionsOf } from '../../../../src/cli/commands/command-row.ts'
import { commandTable } from '../../../../src/modules/command-table.ts'
import { completionsOf } from '../../../../src/cli/completion/completions-of.ts'

/** Returns the lines that fit the last of these words. */
function linesAfter(...words: readonly string[]): readonly string[] {
  return completionsOf(commandTable, words)
}

/** Returns them without what they mean. */
function offered(...words: readonly string[]): readonly string[] {
  return linesAfter(...words).map((line) => line.replace(/\t.*/, ''))
}

test('commands are completed, then their second words', () => {
  const first = offered('')
  for (const { name } of commandTable) assert.ok(first.includes(name.split(' ')[0] ?? ''), name)
  assert.equal(new Set(first).size, first.length)
  assert.deepEqual(offered('bo'), ['bots'])
  assert.deepEqual(
    offered('bots', ''),
    commandTable.flatMap(({ name }) => (name.startsWith('bots ') ? [name.slice(5)] : [])),
  )
  assert.deepEqual(offered('dead-letters', 'r'), ['reasons', 'replay'])
  assert.deepEqual(offered('--v'), ['--version'])
  assert.deepEqual([offered('hel'), offered('help', 'we')], [['help'], ['webhook']])
  assert.deepEqual(offered('help', 'webhook', ''), [])
  assert.deepEqual(offered('bots', '-'), ['--help'])
})

test('the options of a command are completed, and only those', () => {
  for (const row of commandTable) {
    const { name } = row
    const expected = [...optionsOf(row).map((option) => `--${option.name}`), '--help']
    assert.deepEqual(offered(...name.split(' '), '--'), expected, name)
  }
  assert.deepEqual(offered('push', '4711', '--ord'), ['--ordering-key'])
  assert.deepEqual(offered('push', '4711', ''), offered('push', '4711', '--'))
})

test('what stands after an option is a path, or one of its words, with and without =', () => {
  for (const words of [['--dir', 'da'], ['--dir=da'], ['--dir', '=', 'da'], ['--dir', '']]) {
    assert.deepEqual(offered('serve', ...words), ['PATH'])
  }
  for (const words of [['--log-level', 'er'], ['--log-level=er'], ['--log-level', '=', 'er']]) {
    assert.deepEqual(offered('serve', ...words), ['error'])
  }
  assert.equal(offered('serve', '--log-level', '').length, 7)
  assert.deepEqual(offered('bots', 'list', '--limit', ''), [])
  assert.deepEqual(offered('bots', 'list', '--limit='), [])
  assert.ok(offered('bots', 'list', '--json', '').includes('--limit'), 'a switch has no value')
})

test('the words of an argument are completed, and need no dash', () => {
  assert.deepEqual(offered('completion', ''), ['bash', 'zsh', 'fish'])
  assert.deepEqual(offered('completion', 'f'), ['fish'])
  assert.deepEqual(offered('completion', '-'), ['--help'])
})

test('nothing follows what is no command', () => {
  for (const words of [
    ['frobnicate', ''],
    ['bots', 'frobnicate', '--'],
    ['', ''],
    ['-x', ''],
  ]) {
    assert.deepEqual(offered(...words), [], words.join(' '))
  }
  assert.deepEqual(linesAfter(), linesAfter(''))
})

test('a line has what a shell needs no quotes for, and after a tab a sentence', () => {
  const beginnings = ['', '--'].flatMap((last) => [
    [last],
    ...commandTable.flatMap(({ name }) => [
      [name.split(' ')[0] ?? '', last],
      [...name.split(' '), last],
    ]),
  ])
  for (const words of beginnings) {
    for (const line of linesAfter(...words)) assert.match(line, /^[a-z-]+\t[^`\t\n]*$/)
  }
})
