/** `postbote --help`, and the help of one command or of several that share their first word. */
import {
  explained,
  flagOf,
  helpText as serverOptionsHelp,
  helpWidth,
  plain,
  wrapped,
} from '../../config/config-text.ts'
import { remoteOptions } from '../remote/private-api-of.ts'
import { type CommandRow, serverOptions, synopsisOf } from './command-row.ts'

/** Where the sentences begin, if the lines are long enough for two columns. */
const sentenceColumn = 57
const twoColumnsMin = 100
const indent = 6
/** Sentences about arguments and options are not narrower, even if the terminal is. */
const columnWidthMin = 40

/**
 * Returns the help.
 *
 * @param asked - the commands that the arguments name; all of them if they name none
 * @param all - the table of commands
 * @param columns - the width of the terminal; undefined or 0 if there is none
 */
export function helpText(
  asked: readonly CommandRow[],
  all: readonly CommandRow[],
  columns?: number,
): string {
  const width = columns === undefined || columns < 40 ? helpWidth : columns
  const [first] = asked
  if (first === undefined) {
    const end = 'postbote COMMAND --help lists the options of a command.'
    return `Usage:\n${usageOf(all, width)}  postbote help [GROUP | all]\n\n${end}\n`
  }
  const usage = `Usage:\n${usageOf(asked, width)}`
  if (asked.length > 1) return usage
  return first.options === serverOptions
    ? `${usage}\n${serverOptionsHelp(width)}`
    : commandHelp(first, width)
}

/** Where the sentences of the short help begin. */
const typedWidth = 30
const firstWidth = 38
const flagWidth = 22
/** The narrowest terminal that is usual. */
const shortWidth = 80

/** Commands that are about the same. */
export interface CommandGroup {
  /** What `postbote help` takes. */
  readonly name: string
  /** On one line of a terminal, after `postbote help` and the name. */
  readonly sentence: string
}

export interface ShortHelp {
  /** What an operator in trouble types, and what it shows. */
  readonly firstCommands: readonly (readonly [typed: string, shows: string])[]
  readonly groups: readonly CommandGroup[]
}

/** Returns where to begin, the groups of commands, a line each, and the options that most commands have, if they are asked for. */
export function groupsHelp(
  { firstCommands, groups: all }: ShortHelp,
  asked: 'groups' | 'groups and options',
): string {
  const common = remoteOptions.filter(({ name }) => !name.startsWith('admin-'))
  const options = [
    ...common.flatMap((option) => shortLines(flagOf(option, bracketed), option.sentence)),
    ...shortLines('-h, --help', 'Help of a command, or of this program.'),
  ]
  const first = firstCommands.map(([typed, shows]) => typedLine(typed, firstWidth, shows))
  const groups = all.map(({ name, sentence }) => typedLine(`help ${name}`, typedWidth, sentence))
  return [
    'Usage: postbote COMMAND [arguments] [options]',
    '',
    'Something is wrong? Start here; docs/run/trouble.md has causes and remedies.',
    ...first,
    '',
    ...groups,
    '',
    ...(asked === 'groups' ? [] : ['Options that most commands have:', ...options, '']),
    'postbote COMMAND --help shows the options of one, postbote help all lists all.',
    '',
  ].join('\n')
}

function typedLine(typed: string, width: number, sentence: string): string {
  return `${`  postbote ${typed}`.padEnd(width)}${sentence}`
}

function shortLines(term: string, text: string): readonly string[] {
  const lines = wrapped(text, shortWidth - flagWidth)
  return lines.map((line, nth) => `  ${nth === 0 ? term : ''}`.padEnd(flagWidth) + line)
}

function usageOf(rows: readonly CommandRow[], width: number): string {
  return rows
    .flatMap((row) => usageLines(row, width))
    .map((line) => `${line}\n`)
    .join('')
}

function usageLines(row: CommandRow, width: number): readonly string[] {
  const usage = `  postbote ${synopsisOf(row)}`
  const column = width < twoColumnsMin ? indent : sentenceColumn
  const sentence = wrapped(row.sentence, Math.min(width, helpWidth) - column)
  const [first = '', ...rest] = sentence.map((line) => ' '.repeat(column) + line)
  if (usage.length < column - 1) return [usage + first.slice(usage.length), ...rest]
  return [usage, first, ...rest]
}

/** The help of a command, in lines of about `width` characters. */
export function commandHelp(row: CommandRow, width: number): string {
  const words = row.kind === 'parsed' ? row.arguments : []
  const names = words.map(({ name }) => ` ${name}`)
  const synopsis = row.synopsis ?? `${row.name} [options]${names.join('')}`
  const values = words.map(({ name, sentence }) => [name.slice(1, -1), sentence] as const)
  const options = [
    ...row.options.map((option) => [flagOf(option, bracketed), plain(explained(option))] as const),
    ['-h, --help', 'Prints this text and exits.'] as const,
  ]
  const column = Math.max(...[...values, ...options].map(([term]) => term.length)) + 4
  const lines = ([term, text]: readonly [string, string]): readonly string[] => {
    const [first = '', ...rest] = wrapped(text, Math.max(width - column, columnWidthMin))
    return [`  ${term}`.padEnd(column) + first, ...rest.map((line) => ' '.repeat(column) + line)]
  }
  const sentence = `${row.sentence.charAt(0).toUpperCase()}${row.sentence.slice(1)}.`
  const more = 'It also takes the options of the server: postbote serve --help lists them.'
  return [
    `Usage: postbote ${synopsis}`,
    '',
    ...wrapped(sentence, width),
    ...(values.length === 0 ? [] : ['', 'Arguments:', ...values.flatMap(lines)]),
    '',
    'Options:',
    ...options.flatMap(lines),
    ...(row.takesServerOptions === true ? ['', more] : []),
    '',
  ].join('\n')
}

function bracketed(value: string): string {
  return `<${value}>`
}
