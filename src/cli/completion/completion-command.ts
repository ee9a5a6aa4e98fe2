/** `postbote completion`: prints the script with which a shell completes the commands and options of postbote. */
import { oneOf } from '../../config/config-values.ts'
import type { CommandRow, ParsedCommand } from '../commands/command-row.ts'
import { bashCompletion } from './bash-completion.ts'
import { type CompletionModel, completionModel } from './completion-model.ts'
import { fishCompletion } from './fish-completion.ts'
import { zshCompletion } from './zsh-completion.ts'

const scripts: Readonly<Record<'bash' | 'zsh' | 'fish', (model: CompletionModel) => string>> = {
  bash: bashCompletion,
  zsh: zshCompletion,
  fish: fishCompletion,
}

const shellArgument = {
  name: '<shell>',
  kind: oneOf(['bash', 'zsh', 'fish']),
  sentence: 'bash, zsh or fish.',
} as const

/** `rows` returns the table of commands, which this command is a part of. */
export function completionCommand(rows: () => readonly CommandRow[]): ParsedCommand {
  return {
    kind: 'parsed',
    name: 'completion',
    sentence: 'prints the script with which a shell completes commands and options',
    arguments: [shellArgument],
    options: [],
    run: async (call) => {
      process.stdout.write(scripts[call.need(shellArgument)](completionModel(rows())))
    },
  }
}
