/** The command `postbote` with its subcommands, which the table of commands lists. main.ts loads it. */
import { readFileSync } from 'node:fs'
import { commandTable } from './cli/commands/command-table.ts'
import { commandsAsked, commandsNamed, findCommand } from './cli/commands/find-command.ts'
import { helpText } from './cli/commands/help-text.ts'
import { parseCommand } from './cli/commands/parse-command.ts'
import { configOf, outliveReaders, runCommand } from './cli/commands/run-command.ts'
import { isHelpAsked } from './config/config.ts'
import { entryFiles } from './entry-files.ts'

/** Runs the command that the arguments name. */
export async function program(argv: readonly string[]): Promise<void> {
  const [first] = argv
  if (first === undefined || first === 'help' || (isHelpAsked(argv) && !printsOwnHelp(argv))) {
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

outliveReaders(process)
await runCommand(() => program(process.argv.slice(2)))
