/**
 * The commands that the page offers to copy: each is one that the program takes, and each call of `curl` is of a method that the
 * server has. They are found in the source of the page, wherever they are, so that none is forgotten.
 */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { parseCommand } from '../../../../src/cli/commands/parse-command.ts'
import { findCommand } from '../../../../src/cli/commands/find-command.ts'
import { type Config, parseConfig } from '../../../../src/config/config.ts'
import { ownMethodNames } from '../../../../src/http/target.ts'
import { commandTable } from '../../../../src/modules/command-table.ts'

const page = new URL('../../../../../src/page/', import.meta.url)

/** Returns the commands in the literals of the page. A value that is filled in later is 7. */
function copiedCommands(): readonly string[] {
  const files = readdirSync(page, { recursive: true, encoding: 'utf8' })
  return files
    .filter((file) => file.endsWith('.ts'))
    .flatMap((file) => [...readFileSync(new URL(file, page), 'utf8').matchAll(literal)])
    .map(([, , text = '']) => text.replaceAll(/\$\{[^}]*\}/g, '7'))
}

const literal = /(['"`])((?:postbote|curl) (?:(?!\1).)*)\1/g

test('each command that the page offers to copy is taken as it is', () => {
  const commands = copiedCommands()
  assert(commands.length >= 5, 'the page offers commands')
  for (const command of commands) {
    const [program, ...argv] = command.split(' ')
    if (program === 'curl') assertMethod(command)
    else assert.doesNotThrow(() => parse(argv), command)
  }
})

test('a command that the program would refuse is found', () => {
  for (const command of [
    '--retain 1d',
    'serve --retain-bytes 64Q',
    'keys create',
    'bots list --x',
  ]) {
    assert.throws(() => parse(command.split(' ')), command)
  }
})

const configOf = (argv: readonly string[]): Config =>
  parseConfig({ argv, env: {}, readFile: () => '' })

function parse(argv: readonly string[]): void {
  const { row, argv: rest } = findCommand(commandTable, argv)
  if (row.kind === 'parsed') parseCommand(row, rest, configOf)
  else configOf(rest)
}

/** A call of the private API is made with a key. */
function assertMethod(command: string): void {
  if (command.includes('Bearer $KEY')) return
  const method = /\/bot\$\{?TOKEN[^/]*\/(\w+)/.exec(command)?.[1]
  assert(
    ownMethodNames.some((name) => name === method?.toLowerCase()),
    command,
  )
}
