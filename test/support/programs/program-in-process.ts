/** The program for `run-in-process.ts`. The build bundles it: its many files take as long to load as several commands. */
import { runCommand } from '../../../src/cli/commands/run-command.ts'
import { runProgram } from '../../../src/modules/run-program.ts'

export function program(argv: readonly string[]): Promise<void> {
  return runCommand(() => runProgram(argv))
}
