/** Finds the command that arguments name. Names have one or two words. Pure. */
import { ConfigError } from '../../config/config.ts'
import { adviceFor, advised } from './advice-for.ts'
import type { CommandRow } from './command-row.ts'

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
  const group = commandsNamed(rows, argv)
  if (group.length > 0) {
    const actions = group.map(({ name }) => name.slice(first.length + 1))
    throw new ConfigError([
      `${first}: expected ${choiceOf(actions)}${adviceFor(argv[1] ?? '', actions)}`,
    ])
  }
  const words = [...new Set(rows.map(({ name }) => name.replace(/ .*/, '')))]
  const full = rows.map(({ name }) => name).filter((name) => name.endsWith(` ${first}`))
  const advice = full.length > 0 ? advised(full) : adviceFor(first, [...words, 'help'])
  throw new ConfigError([
    `unknown command ${JSON.stringify(first)}: expected ${choiceOf(words)}${advice}`,
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
  if (words.length === 0) return []
  const group = words.length === 1 ? commandsNamed(rows, words) : []
  return group.length > 0 ? group : [findCommand(rows, words).row]
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
