/**
 * The form of a row in the table of commands. Dispatch, `--help`, docs/reference/cli.md and the shell completions are derived from
 * the rows.
 *
 *     parsed   parse-command.ts reads the arguments, by the rows of its arguments and options
 *     raw      the command reads its arguments itself, because most of them are options of the server, which also come
 *              from the environment and a file (config.ts); the rows serve the documentation and the completions
 */
import { configFileOption } from '../../config/config.ts'
import { type OptionRow, optionRows } from '../../config/config-options.ts'
import type { Kind } from '../../config/config-values.ts'
import type { CommandCall } from './command-call.ts'

/** A positional argument. */
export interface ArgumentRow {
  /** In the notation of the help: `<bot_id>`, or `[update_id]` if it may be left out. */
  readonly name: `<${string}>` | `[${string}]`
  readonly kind: Kind<unknown>
  readonly sentence: string
}

interface DocumentedCommand {
  /** Its words, such as `bots list`. */
  readonly name: string
  /** Those that are about the same, in the short help. The table of all commands says which. */
  readonly group?: string
  /** What it does, as the end of a sentence that begins with its name. */
  readonly sentence: string
  /** Those that its help shows. */
  readonly options: readonly OptionRow[]
  /** It takes all options of the server, too, which the help of `serve` shows. */
  readonly takesServerOptions?: boolean
}

export interface ParsedCommand extends DocumentedCommand {
  readonly kind: 'parsed'
  readonly arguments: readonly ArgumentRow[]
  /** Its name and arguments, if the help shows them on one line in place of its rows. */
  readonly synopsis?: string
  /** The options that the error of an unknown one lists, if a mistyped one could do harm. */
  readonly onlyOptions?: string
  /** Whether the first word of its name alone, with options at most, means it: it is where one begins. */
  readonly isUsual?: boolean
  /** What the error of a missing argument says of the command that needs none. */
  readonly otherwise?: string
  run(call: CommandCall): Promise<void>
}

export interface RawCommand extends DocumentedCommand {
  readonly kind: 'raw'
  /** Its name and arguments, as the help shows them. */
  readonly synopsis: string
  /** `--help` after its name is an argument of it. */
  readonly printsOwnHelp?: boolean
  run(argv: readonly string[]): Promise<unknown>
}

export type CommandRow = ParsedCommand | RawCommand

export const serverOptions: readonly OptionRow[] = [
  ...optionRows.map(([, row]) => row),
  configFileOption,
]

const serverKinds = new Map(serverOptions.map(({ name, kind }) => [name, kind]))

/** Returns whether an option is one of the server. One that only has its name has other values. */
export function isServerOption({ name, kind }: Pick<OptionRow, 'name' | 'kind'>): boolean {
  return serverKinds.get(name) === kind
}

/** Returns all options that a command takes. */
export function optionsOf({ options, takesServerOptions }: CommandRow): readonly OptionRow[] {
  if (takesServerOptions !== true) return options
  const shown = new Set(options.map(({ name }) => name))
  return [...options, ...serverOptions.filter(({ name }) => !shown.has(name))]
}

/** Returns the names of the options of the server that a command takes. */
export function serverOptionNamesOf(row: CommandRow): readonly string[] {
  return optionsOf(row)
    .filter((option) => isServerOption(option))
    .map(({ name }) => name)
}

/** Returns the command and its arguments as the help shows them, without the program. */
export function synopsisOf(row: CommandRow): string {
  if (row.synopsis !== undefined) return row.synopsis
  if (row.kind === 'raw') return row.name
  const names = row.arguments.map(({ name }) => name)
  return [row.name, ...names, ...(row.options.length > 0 ? ['[options]'] : [])].join(' ')
}
