/** Finds the command that arguments name. Names have one or two words. Pure. */
import { Command, CommanderError } from 'commander'
import { ConfigError } from '../../config/config.ts'
import type { CommandRow } from './command-row.ts'
import { adviceIn } from './parse-command.ts'

/** A command, and the arguments after its name. */
export interface FoundCommand {
  readonly row: CommandRow
  readonly argv: readonly string[]
}

/**
 * Returns the command that the arguments name.
 *
 * @throws ConfigError that lists the commands, or those of the group, if there is no such command.
 */
export function findCommand(rows: readonly CommandRow[], argv: readonly string[]): FoundCommand {
  for (const words of [2, 1]) {
    const name = argv.slice(0, words).join(' ')
    const row = rows.find((each) => each.name === name)
    if (row !== undefined) return { row, argv: argv.slice(words) }
  }
  const [first = ''] = argv
  const group = commandsNamed(rows, [first])
  if (group.length > 0) {
    const actions = group.map(({ name }) => name.slice(first.length + 1))
    throw new ConfigError([`${first}: expected ${choiceOf(actions)}${adviceOf(argv[1], actions)}`])
  }
  const words = [...new Set(rows.map(({ name }) => name.replace(/ .*/, '')))]
  throw new ConfigError([
    `unknown command ${JSON.stringify(first)}: expected ${choiceOf(words)}${adviceOf(first, words)}`,
  ])
}

/**
 * Returns the commands whose help is asked for: none if the arguments name none, which is the help of all.
 *
 * @throws ConfigError if they name a command that does not exist.
 */
export function commandsAsked(
  rows: readonly CommandRow[],
  argv: readonly string[],
): readonly CommandRow[] {
  const option = argv.findIndex((word) => word.startsWith('-'))
  const words = option < 0 ? argv : argv.slice(0, option)
  const named = commandsNamed(rows, words)
  const [first] = named
  if (words.length === 0) return []
  const isGroup = words.length === 1 && named.length > 0
  return isGroup || first?.name === words.slice(0, 2).join(' ')
    ? named
    : [findCommand(rows, words).row]
}

/** Commander knows which word is meant. */
function adviceOf(word: string | undefined, words: readonly string[]): string {
  if (word === undefined) return ''
  const program = new Command().exitOverride().configureOutput({ writeErr: () => undefined })
  for (const each of words) program.command(each)
  try {
    program.parse([word], { from: 'user' })
    return ''
  } catch (error) {
    return error instanceof CommanderError ? adviceIn(error.message) : ''
  }
}

/** Returns the commands whose names begin with the first words of the arguments, as far as there are such commands. */
export function commandsNamed(
  rows: readonly CommandRow[],
  argv: readonly string[],
): readonly CommandRow[] {
  for (const words of [2, 1]) {
    const name = argv.slice(0, words).join(' ')
    const named = rows.filter((row) => `${row.name} `.startsWith(`${name} `))
    if (named.length > 0) return named
  }
  return []
}

function choiceOf(words: readonly string[]): string {
  return words.join(', ').replace(/, (\S+)$/, ' or $1')
}
