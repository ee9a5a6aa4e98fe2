/** What `postbote` does with its arguments: the command that they name, help, the version, or what a shell asks at Tab. */
import { isHelpAsked } from '../config/config.ts'
import { shortHelp } from './command-groups.ts'
import { commandTable } from './command-table.ts'
import { completionsOf } from '../cli/completion/completions-of.ts'
import { commandsAsked, commandsNamed, findCommand } from '../cli/commands/find-command.ts'
import { printVersion } from '../cli/commands/version-command.ts'
import { groupsHelp, helpText } from '../cli/commands/help-text.ts'
import { parseCommand } from '../cli/commands/parse-command.ts'
import { configOf } from '../cli/commands/run-command.ts'

/** Runs the command that the arguments name. */
export async function runProgram(argv: readonly string[]): Promise<void> {
  const [first] = argv
  if (first === 'complete' && argv[1] === '--') {
    const lines = completionsOf(commandTable, argv.slice(2))
    process.stdout.write(lines.map((line) => `${line}\n`).join(''))
  } else if (first === undefined || first === 'help' || isHelpOf(argv)) {
    process.stdout.write(helpAsked(argv, process.stdout.columns))
  } else if (first === '--version') {
    printVersion()
  } else {
    const { row, argv: rest } = findCommand(commandTable, argv)
    await (row.kind === 'raw' ? row.run(rest) : row.run(parseCommand(row, rest, configOf)))
  }
}

/** Returns the help of what the arguments name; without any, of the groups of commands. */
function helpAsked(argv: readonly string[], columns: number | undefined): string {
  if (argv.length === 0) return groupsHelp(shortHelp, 'groups')
  const words = argv[0] === 'help' ? argv.slice(1) : argv
  const asked = commandsAsked(commandTable, words)
  if (asked.length > 0 || words[0] === 'all' || words.includes('--all')) {
    return helpText(asked, commandTable, columns)
  }
  return groupsHelp(shortHelp, 'groups and options')
}

function isHelpOf(argv: readonly string[]): boolean {
  return isHelpAsked(argv) && !printsOwnHelp(argv)
}

function printsOwnHelp(argv: readonly string[]): boolean {
  const [row, ...others] = commandsNamed(commandTable, argv)
  return others.length === 0 && row?.kind === 'raw' && row.printsOwnHelp === true
}
