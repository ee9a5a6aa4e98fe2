/** How the result of a command is shown: for whom, how wide, and which columns of a list. */
import { ConfigError } from '../../config/config.ts'
import { anyText, listOf, oneOf, onOff } from '../../config/config-values.ts'
import type { OptionRow } from '../../config/config-options.ts'
import { systemClock } from '../../kit/clock.ts'
import type { CommandCall } from '../commands/command-call.ts'
import { nameLines, type TableRows, textTable } from './text-table.ts'
import { foldText } from './width-of.ts'

export const jsonOption = {
  name: 'json',
  kind: onOff,
  sentence: 'Prints JSON for programs instead of text for people.',
} as const

const outputOption = {
  name: 'output',
  kind: oneOf(['table', 'json', 'csv']),
  default: 'table',
  sentence: 'How the list is printed. csv has all fields.',
} as const
const wideOption = {
  name: 'wide',
  kind: onOff,
  sentence: 'Shows all fields, whole, and times as dates, however wide the terminal is.',
} as const
const columnsOption = { name: 'columns', kind: listOf(anyText, 1) } as const

/** Returns the options of a command that shows a list whose items have these fields. */
export function listOptions(fields: readonly string[]): readonly OptionRow[] {
  const columns = {
    ...columnsOption,
    kind: listOf(oneOf(fields), 1),
    defaultShown: 'those that fit the terminal',
    sentence: 'Shows these fields.',
  }
  return [outputOption, columns, wideOption]
}

export interface ViewParts {
  readonly form: 'table' | 'json' | 'csv'
  /** Those that were asked for. */
  readonly columns: readonly string[] | undefined
  readonly isWide: boolean
  /** Of the terminal; Infinity elsewhere. */
  readonly width: number
  /** The time of people at a terminal, who read ages; undefined elsewhere. */
  readonly nowMs: number | undefined
}

/** What goes into a pipe or a file: everything, whole. */
export const plainView: ViewParts = {
  form: 'table',
  columns: undefined,
  isWide: false,
  width: Infinity,
  nowMs: undefined,
}

/** The view of one result. It remembers what had no place in it. */
export class View {
  readonly form: ViewParts['form']
  readonly columns: ViewParts['columns']
  readonly isWide: boolean
  readonly #width: number
  readonly #nowMs: number | undefined
  readonly #left = new Set<string>()

  constructor({ form, columns, isWide, width, nowMs }: ViewParts = plainView) {
    this.form = form
    this.columns = columns
    this.isWide = isWide
    this.#width = width
    this.#nowMs = nowMs
  }

  /**
   * Returns the view that a call asks for. Some terminals say 0 for a width that they do not know.
   *
   * @throws ConfigError if its options contradict each other
   */
  static of(call: CommandCall): View {
    const { isTTY, columns: cells } = process.stdout
    const form = formOf(call)
    const columns = call.get(columnsOption)
    if (form === 'json' && columns !== undefined) {
      throw new ConfigError(['--columns: expected none with JSON, which has all fields'])
    }
    return new View({
      form,
      columns,
      isWide: call.has(wideOption),
      width: isTTY && cells > 0 ? cells : Infinity,
      nowMs: isTTY ? systemClock.nowMs() : undefined,
    })
  }

  /** Whether people read it at a terminal. */
  get isTerminal(): boolean {
    return this.#nowMs !== undefined
  }

  /** The time from which ages count; undefined if times are shown as dates. */
  get nowMs(): number | undefined {
    return this.isWide || this.form === 'csv' ? undefined : this.#nowMs
  }

  /** Returns a table. The columns of `fields` are left out, the last ones first, if the terminal is too narrow. */
  table(rows: TableRows, fields: readonly string[] = rows.head): readonly string[] {
    const isChosen = this.columns !== undefined
    const { lines, left } = textTable(
      { isWhole: isChosen, ...rows },
      this.isWide ? Infinity : this.#width,
    )
    for (const nth of left) this.#left.add(fields[nth] ?? '')
    return lines
  }

  /** Returns names and their values, each on a line. */
  pairs(pairs: readonly (readonly [name: string, value: string])[]): readonly string[] {
    return nameLines(pairs, this.#width)
  }

  /** Returns sentences in lines that fit, whole. */
  texts(texts: readonly string[]): readonly string[] {
    return texts.flatMap((text) => foldText(text, this.#width))
  }

  /** The view of a table within something else, whose command has no --wide: what has no place is not told. */
  get inner(): View {
    const { form, columns, isWide } = this
    return new View({ form, columns, isWide, width: this.#width, nowMs: this.#nowMs })
  }

  /** What to do to see the columns that had no place, if there are any. */
  get hints(): readonly string[] {
    return this.#left.size === 0 ? [] : [`--wide also shows ${[...this.#left].join(', ')}`]
  }
}

/** `--json` is short for `--output json`. */
function formOf(call: CommandCall): View['form'] {
  const form = call.need(outputOption)
  if (!call.has(jsonOption)) return form
  if (form === 'csv') throw new ConfigError(['--output: expected json with --json, got "csv"'])
  return 'json'
}
