/**
 * `postbote doctor`: says what must change before a server can run here, or, with `--database`, what makes a database
 * unsafe or slow. The exit code is 1 if something must change.
 */
import { type Config, configFileOption } from '../../config/config.ts'
import { optionTable } from '../../config/config-options.ts'
import { anyText } from '../../config/config-values.ts'
import { waitingClock } from '../../kit/clock.ts'
import type { CommandCall } from '../commands/command-call.ts'
import type { ParsedCommand } from '../commands/command-row.ts'
import { printJsonLine } from '../output/print-result.ts'
import { jsonOption } from '../output/view.ts'
import { harmless } from '../output/text-table.ts'
import { type Examined, examineMachine } from './examine-machine.ts'

const webhookUrlOption = {
  name: 'webhook-url',
  kind: anyText,
  sentence:
    'URL of a webhook: the doctor looks up its host and connects to it, but sends no request.',
} as const

/** @param databases - examines the databases of `--database` */
export function doctorCommand(databases: Examine): ParsedCommand {
  return { ...row, run: (call) => doctor(call, databases) }
}

type Examine = (config: Config) => Promise<readonly Examined[]>

const row = {
  kind: 'parsed',
  name: 'doctor',
  sentence:
    'says what must change before a server can run here, or, with --database, what makes a database unsafe or slow; the exit code is 1 if something must change',
  arguments: [],
  options: [webhookUrlOption, jsonOption, optionTable.dir, optionTable.databases, configFileOption],
  takesServerOptions: true,
} as const

const marks = { good: 'ok  ', warn: 'WARN', bad: 'BAD ' } as const

async function doctor(call: CommandCall, examineDatabases: Examine): Promise<void> {
  const config = call.config()
  const examined =
    config.databases.length === 0
      ? await examineMachine(config, waitingClock, call.get(webhookUrlOption))
      : await examineDatabases(config)
  const findings = examined.flatMap((each) => each.findings)
  if (call.has(jsonOption)) {
    printJsonLine(JSON.stringify({ findings }))
  } else {
    for (const { heading, findings: own } of examined) {
      const lines = own.map(({ level, text }) => `${marks[level]} ${text}`)
      process.stdout.write([...heading, ...lines].map((line) => `${harmless(line)}\n`).join(''))
    }
  }
  if (findings.some(({ level }) => level === 'bad')) process.exitCode = 1
}
