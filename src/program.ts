/** The command `postbote` with its subcommands, which the table of commands lists. main.ts loads it. */
import { outliveReaders, runCommand } from './cli/commands/run-command.ts'
import { runProgram } from './modules/run-program.ts'

outliveReaders(process)
void runCommand(() => runProgram(process.argv.slice(2)))
