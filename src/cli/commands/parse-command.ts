/**
 * Parses the arguments of a command by its row. Errors are ConfigErrors in the words of the options of the server, and never
 * contain the text after an unknown option, because that may be a secret whose option was mistyped.
 */
import { ConfigError } from '../../config/config.ts'
import { durationMs } from '../../config/duration.ts'
import { readFlags } from '../../config/read-flags.ts'
import { advised, adviceFor } from '../../kit/text/advice-for.ts'
import { CommandCall, type CommandCallParts } from './command-call.ts'
import {
  isServerOption,
  optionsOf,
  type ParsedCommand,
  serverOptionNamesOf,
} from './command-row.ts'

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
  configOf: CommandCallParts['configOf'],
): CommandCall {
  const problems: string[] = []
  const words: string[] = []
  const places: number[] = []
  const given = readFlags(argv, {
    rows: optionsOf(row),
    problems,
    onWord(text, index) {
      words.push(text)
      places.push(index)
    },
    unknown: (source) => unknownText(source, row),
    takesDashes: true,
  })
  if (problems.length > 0) throw new ConfigError(problems)
  assertCount(words.length, row, unitAdvice(argv, places[row.arguments.length]))
  const texts = new Map([...given].map(([name, { text }]) => [name, text]))
  for (const [nth, { name }] of row.arguments.entries()) {
    const text = words[nth]
    if (text !== undefined) texts.set(name, text)
  }
  const serverNames = serverOptionNamesOf(row)
  const serverFlags = [...texts]
    .filter(([name]) => serverNames.includes(name))
    .map(([name, text]) => `--${name}=${text}`)
  const call = new CommandCall({ texts, serverFlags, configOf })
  // A bad value is an error even if the command would not come to read it. Options of the server are checked together with
  // the environment and the file.
  const own = row.options.filter((option) => !isServerOption(option))
  for (const each of [...row.arguments, ...own]) call.get(each)
  return call
}

function unknownText(source: string, { name, options, onlyOptions }: ParsedCommand): string {
  if (onlyOptions !== undefined) return `${source}: expected only ${onlyOptions} with ${name}`
  const names = [...options.map((option) => option.name), 'help']
  const advice = source.startsWith('--') ? adviceFor(source.slice(2), names, '--') : ''
  return `${source}: unknown option${advice}; see --help`
}

/** Returns what was probably meant if a word is the unit of the number before it, as in `--since 10 m`. */
function unitAdvice(argv: readonly string[], place = argv.length): string {
  const [option = '', value = '', unit = ''] = [-2, -1, 0].map((nth) => argv[place + nth])
  const [, digits] = /^--[a-z-]+=([\d.]+)$/.exec(value) ?? []
  const count = digits ?? (option.startsWith('--') ? value : '')
  const isSpan = /^[\d.]+$/.test(count) && durationMs(`${count}${unit}`) !== undefined
  return isSpan ? advised([`${count}${unit}`]) : ''
}

function assertCount(count: number, row: ParsedCommand, advice: string): void {
  const missing = row.arguments[count]
  if (missing?.name.startsWith('<') === true) {
    const { name, kind } = missing
    const other = row.otherwise === undefined ? '' : `; ${row.otherwise}`
    throw new ConfigError([`${row.name}: expected ${name}, ${kind.expected}${other}; see --help`])
  }
  const most = row.arguments.length
  if (count <= most) return
  const expected = ['no argument', 'one argument'][most] ?? `at most ${most} arguments`
  throw new ConfigError([
    `${row.name}: expected ${expected} besides options${advice || ';'} see --help`,
  ])
}
