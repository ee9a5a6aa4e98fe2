/** Finds the command that arguments name. Names have one or two words. Pure. */
import { ConfigError, shown } from '../../config/config.ts'
import { choiceOf } from '../../kit/text/counted.ts'
import { adviceFor, advised } from '../../kit/text/advice-for.ts'
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
  const [first = '', second] = argv
  const group = commandsNamed(rows, argv)
  const usual = group.find((row) => row.kind === 'parsed' && row.isUsual === true)
  if (usual !== undefined && (second === undefined || isOption(second))) {
    return { row: usual, argv: argv.slice(1) }
  }
  if (group.length > 0) {
    const actions = group.map(({ name }) => name.slice(first.length + 1))
    const advice = adviceInGroup(rows, argv, actions)
    throw new ConfigError([`${first}: expected ${choiceOf(actions)}${advice}`])
  }
  const inGroup = commandsInGroup(rows, first)
  if (inGroup.length > 0) {
    throw new ConfigError([`${first}: expected ${choiceOf(inGroup.map(({ name }) => name))}`])
  }
  const [option] = /^--[a-z-]{1,64}/.exec(first) ?? []
  if (option !== undefined) {
    throw new ConfigError([
      `${option}: options come after the command, as in postbote summary ${option}`,
    ])
  }
  const what = `unknown command ${shown(first)}`
  throw new ConfigError([`${what}${meantBy(rows, argv)} See postbote help`])
}

/** The help of a group is that of all its commands. */
function isOption(word: string): boolean {
  return word.startsWith('--') && word !== '--help'
}

/** Returns what was probably meant by an action that the commands with this first word do not have. */
function adviceInGroup(
  rows: readonly CommandRow[],
  [first = '', action = '']: readonly string[],
  actions: readonly string[],
): string {
  // `updates push`, which the help shows in this group.
  const own = commandsInGroup(rows, first).find(({ name }) => name === action)
  if (own !== undefined) return advised([`postbote ${own.name}`])
  // `node list`, where another command shows them all.
  const other = rows.find(({ name }) => name !== first && twinsOf(first).includes(name))
  return adviceFor(action, actions) || (other === undefined ? '' : advised([other.name]))
}

/** Returns which commands were probably meant, as the end of a sentence. */
function meantBy(
  rows: readonly CommandRow[],
  [first = '', second = '']: readonly string[],
): string {
  const names = rows.map(({ name }) => name)
  // `list bots`, and the second word alone.
  const ends = names.filter((name) => name.endsWith(` ${first}`))
  const turned = ends.filter((name) => twinsOf(second).some((twin) => name.startsWith(`${twin} `)))
  if (ends.length > 0) return advised(turned.length > 0 ? turned : ends)
  const words = names.map((name) => name.replace(/ .*/, ''))
  const known = [...new Set([...words, ...rows.flatMap(({ group }) => group ?? []), 'help'])]
  const twins = known.filter((word) => twinsOf(first).includes(word))
  const full = twins.map((word) => `${word} ${second}`).filter((name) => names.includes(name))
  if (full.length > 0) return advised(full)
  if (twins.length > 0) return advised(twins)
  return adviceFor(first, known) || adviceForOther(first, names) || '.'
}

/** What other programs call a command. */
const otherWords = [
  ['status', 'summary'],
  ['logs', 'events'],
] as const

function adviceForOther(first: string, names: readonly string[]): string {
  const meant = otherWords.find(([word]) => adviceFor(first, [word]) !== '')
  return meant !== undefined && names.includes(meant[1]) ? advised([meant[1]]) : ''
}

/** Returns the word, its singular and its plural. */
function twinsOf(word: string): readonly string[] {
  return [word, `${word}s`, word.replace(/s$/, '')]
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
  if (words[0] === 'all') return []
  const [word = ''] = words
  const inGroup = commandsInGroup(rows, word)
  const group = inGroup.length > 0 ? inGroup : commandsNamed(rows, words)
  return words.length === 1 && group.length > 0 ? group : [findCommand(rows, words).row]
}

/** Returns the commands of the group with this name; none if there is no such group. */
export function commandsInGroup(rows: readonly CommandRow[], name: string): readonly CommandRow[] {
  return rows.filter(({ group }) => group === name)
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
