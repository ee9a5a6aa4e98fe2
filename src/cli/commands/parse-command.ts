/**
 * Parses the arguments of a command by its row, with commander, which also lays out its help. Errors are ConfigErrors in
 * the words of the options of the server, and never contain the text after an unknown option, because that may be a
 * secret whose option was mistyped.
 */
import { Argument, Command, CommanderError, Option } from 'commander'
import { type Config, ConfigError } from '../../config/config.ts'
import type { OptionRow } from '../../config/config-options.ts'
import { CommandCall } from './command-call.ts'
import { optionsOf, type ParsedCommand, serverOptions } from './command-row.ts'

const serverOptionNames = new Set(serverOptions.map(({ name }) => name))

/**
 * Reads the arguments of a command.
 *
 * @param row - the command
 * @param argv - its arguments, without its name
 * @param configOf - reads the options of the server among them
 * @throws ConfigError if an argument is missing, unknown or has another value than expected
 */
export function parseCommand(
  row: ParsedCommand,
  argv: readonly string[],
  configOf: (argv: readonly string[]) => Config,
): CommandCall {
  const command = commandOf(row)
  try {
    command.parse([...argv], { from: 'user' })
  } catch (error) {
    throw error instanceof CommanderError ? new ConfigError([problemOf(error, row)]) : error
  }
  const texts = new Map<string, string>()
  for (const [nth, { name }] of row.arguments.entries()) {
    const text = command.args[nth]
    if (text !== undefined) texts.set(name, text)
  }
  for (const option of command.options) {
    const value: unknown = command.getOptionValue(option.attributeName())
    const isGiven = typeof value === 'string' || typeof value === 'boolean'
    if (isGiven) texts.set(option.name(), `${value}`)
  }
  const serverFlags = [...texts]
    .filter(([name]) => serverOptionNames.has(name))
    .map(([name, text]) => `--${name}=${text}`)
  const call = new CommandCall({ texts, serverFlags, configOf })
  // A bad value is an error even if the command would not come to read it.
  for (const each of [...row.arguments, ...ownOptions(row)]) call.get(each)
  return call
}

/** The help of a command, in lines of at most `width` characters. */
export function commandHelp(row: ParsedCommand, width: number): string {
  const command = commandOf(row).configureOutput({ getOutHelpWidth: () => width })
  const more = 'It also takes the options of the server: postbote serve --help lists them.\n'
  return `${command.helpInformation()}${row.takesServerOptions === true ? `\n${more}` : ''}`
}

/** The options of the server are checked together with the environment and the file. */
function ownOptions(row: ParsedCommand): readonly OptionRow[] {
  return row.options.filter(({ name }) => !serverOptionNames.has(name))
}

function commandOf(row: ParsedCommand): Command {
  const command = new Command(`postbote ${row.name}`)
    .description(`${row.sentence.charAt(0).toUpperCase()}${row.sentence.slice(1)}.`)
    .helpOption('-h, --help', 'Prints this text and exits.')
    .allowExcessArguments(false)
    .exitOverride()
    .configureOutput({ writeErr: () => undefined })
  for (const { name, sentence } of row.arguments) command.addArgument(new Argument(name, sentence))
  for (const option of optionsOf(row)) {
    command.addOption(optionOf(option).hideHelp(!row.options.includes(option)))
    if (isServerSwitch(option)) command.addOption(new Option(`--no-${option.name}`).hideHelp())
  }
  return command
}

/** As a flag of the server (config.ts), it has a negation. */
function isServerSwitch({ name, kind }: OptionRow): boolean {
  return serverOptionNames.has(name) && kind.placeholder === undefined
}

function optionOf({ name, kind, sentence, default: usual, defaultShown }: OptionRow): Option {
  const { placeholder, separator, expected } = kind
  if (placeholder === undefined) return new Option(`--${name}`, sentence)
  const shownDefault = (defaultShown ?? usual ?? 'none').replaceAll('`', '')
  const text = `${sentence} Expected: ${expected}. Default: ${shownDefault}.`
  const option = new Option(`--${name} <${placeholder}>`, text)
  if (separator === undefined) return option
  return option.argParser((given: string, before: unknown) =>
    typeof before === 'string' ? `${before}${separator}${given}` : given,
  )
}

function problemOf({ code, message }: CommanderError, row: ParsedCommand): string {
  const [, quoted = ''] = /'([^']*)'/.exec(message) ?? []
  // commander names the option as its help does: `--limit <N>`.
  const name = quoted.replace(/[= ].*$/s, '')
  switch (code) {
    case 'commander.unknownOption':
      return `${name}: unknown option${adviceIn(message)}; see --help`
    case 'commander.optionMissingArgument':
      return `${name}: expected ${expectedOf(optionsOf(row), name.slice(2))} after it, got no value`
    case 'commander.missingArgument':
      return `${row.name}: expected <${name}>, ${expectedOf(row.arguments, `<${name}>`)}; see --help`
    default:
      return `${row.name}: expected ${countText(row.arguments.length)} besides options; see --help`
  }
}

export function adviceIn(message: string): string {
  const [, advice] = /\n\(Did you mean (.*)\?\)$/.exec(message) ?? []
  return advice === undefined ? '' : `, did you mean ${advice}?`
}

function expectedOf(rows: readonly Pick<OptionRow, 'name' | 'kind'>[], name: string): string {
  return rows.find((row) => row.name === name)?.kind.expected ?? 'a value'
}

function countText(count: number): string {
  if (count === 0) return 'no argument'
  return count === 1 ? 'one argument' : `at most ${count} arguments`
}
