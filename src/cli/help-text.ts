/** `postbote --help`, and the help of one command or of several that share their first word. */
import { helpText as serverOptionsHelp } from '../config/config-text.ts'
import { type CommandRow, synopsisOf } from './command-row.ts'
import { commandHelp } from './parse-command.ts'

/** Where the sentences begin, and where they end. */
const sentenceColumn = 57
const lineWidth = 118

/**
 * Returns the help.
 *
 * @param asked - the commands that the arguments name; all of them if they name none
 * @param all - the table of commands
 */
export function helpText(asked: readonly CommandRow[], all: readonly CommandRow[]): string {
  const [first] = asked
  if (first === undefined) {
    const end = 'postbote COMMAND --help lists the options of a command.'
    return `Usage:\n${usageOf(all)}  postbote --help | --version\n\n${end}\n`
  }
  if (asked.length === 1 && first.kind === 'parsed') return commandHelp(first)
  const takesServerOptions = asked.some((row) => row.kind === 'raw' && row.takesServerOptions)
  return `Usage:\n${usageOf(asked)}${takesServerOptions ? `\n${serverOptionsHelp()}` : ''}`
}

function usageOf(rows: readonly CommandRow[]): string {
  return rows
    .flatMap(usageLines)
    .map((line) => `${line}\n`)
    .join('')
}

function usageLines(row: CommandRow): readonly string[] {
  const usage = `  postbote ${synopsisOf(row)}`
  const [first = '', ...others] = wrapped(row.sentence, lineWidth - sentenceColumn)
  const rest = others.map((line) => ' '.repeat(sentenceColumn) + line)
  if (usage.length < sentenceColumn - 1) return [usage.padEnd(sentenceColumn) + first, ...rest]
  return [usage, ' '.repeat(sentenceColumn) + first, ...rest]
}

/** Splits a text into lines of at most `width` characters. */
function wrapped(text: string, width: number): readonly string[] {
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const line = lines.at(-1)
    if (line === undefined || line.length + 1 + word.length > width) lines.push(word)
    else lines[lines.length - 1] = `${line} ${word}`
  }
  return lines
}
