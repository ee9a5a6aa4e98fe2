/** What `postbote` does with its arguments: the command that they name, help, the version, or what a shell asks at Tab. */
import { readFileSync } from 'node:fs'
import { isHelpAsked } from '../config/config.ts'
import { entryFiles } from '../entry-files.ts'
import { commandTable } from './command-table.ts'
import { completionsOf } from '../cli/completion/completions-of.ts'
import { commandsAsked, commandsNamed, findCommand } from '../cli/commands/find-command.ts'
import { helpText } from '../cli/commands/help-text.ts'
import { parseCommand } from '../cli/commands/parse-command.ts'
import { configOf } from '../cli/commands/run-command.ts'

/** Runs the command that the arguments name. */
export async function runProgram(argv: readonly string[]): Promise<void> {
  const [first] = argv
  if (first === 'complete' && argv[1] === '--') {
    const lines = completionsOf(commandTable, argv.slice(2))
    process.stdout.write(lines.map((line) => `${line}\n`).join(''))
  } else if (
    first === undefined ||
    first === 'help' ||
    (isHelpAsked(argv) && !printsOwnHelp(argv))
  ) {
    const asked = commandsAsked(commandTable, first === 'help' ? argv.slice(1) : argv)
    process.stdout.write(helpText(asked, commandTable, process.stdout.columns))
  } else if (first === '--version') {
    const { version }: { version: string } = JSON.parse(readFileSync(entryFiles.manifest, 'utf8'))
    process.stdout.write(`${version}\n`)
  } else {
    const { row, argv: rest } = findCommand(commandTable, argv)
    await (row.kind === 'raw' ? row.run(rest) : row.run(parseCommand(row, rest, configOf)))
  }
}

function printsOwnHelp(argv: readonly string[]): boolean {
  const [row, ...others] = commandsNamed(commandTable, argv)
  return others.length === 0 && row?.kind === 'raw' && row.printsOwnHelp === true
}
