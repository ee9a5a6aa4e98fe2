/** `postbote --help`, and the help of one command or of several that share their first word. */
import { helpText as serverOptionsHelp, helpWidth, wrapped } from '../../config/config-text.ts'
import { type CommandRow, serverOptions, synopsisOf } from './command-row.ts'
import { commandHelp } from './parse-command.ts'

/** Where the sentences begin, if the lines are long enough for two columns. */
const sentenceColumn = 57
const twoColumnsMin = 100
const indent = 6

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
    return `Usage:\n${usageOf(all, width)}  postbote --help | --version\n\n${end}\n`
  }
  if (asked.length === 1 && first.kind === 'parsed') return commandHelp(first, width)
  const usage = `Usage:\n${usageOf(asked, width)}`
  return first.options === serverOptions ? `${usage}\n${serverOptionsHelp(width)}` : usage
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
