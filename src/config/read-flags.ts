/** Reads the flags of the server, and those of commands, by the rows of their options. */
import { parseArgs } from 'node:util'
import type { OptionRow } from './config-options.ts'

/** The texts of one source before validation: option name -> the name as given, and the text. */
export type Given = Map<string, { readonly source: string; readonly text: string }>

export interface FlagRules {
  readonly rows: readonly OptionRow[]
  /** Gets what is wrong, in the order of the arguments. */
  readonly problems: string[]
  /** Takes an argument that belongs to no option. Arguments count from 0. */
  readonly onWord: (text: string, index: number) => void
  /** Returns what is wrong with an option that has no row. */
  readonly unknown: (source: string) => string
  /**
   * Whether the value after a flag may begin with a dash, as an ordering key does. Otherwise it is more likely a flag, whose
   * value was forgotten.
   */
  readonly takesDashes?: boolean
}

/** So much is shown of what looks like an option. Chosen: twice the longest one. */
export const optionShownMax = 64

type FlagToken = Extract<
  NonNullable<ReturnType<typeof parseArgs>['tokens']>[number],
  { readonly kind: 'option' }
>

/** Returns the texts that flags give. The flags of a list are joined. */
export function readFlags(argv: readonly string[], rules: FlagRules): Given {
  const given: Given = new Map()
  const rows = new Map(rules.rows.map((row) => [row.name, row]))
  const options = rules.rows.map((row) => {
    const type = isSwitch(row) ? 'boolean' : 'string'
    return [row.name, { type }] as const
  })
  const { tokens } = parseArgs({
    args: [...argv],
    options: Object.fromEntries(options),
    strict: false,
    allowPositionals: true,
    tokens: true,
  })
  let last = -1
  let unknownAt = Number.NEGATIVE_INFINITY
  for (const token of tokens) {
    // What follows an unknown option is its value, of which nothing more is to be said.
    const isOfUnknown = token.index === unknownAt + 1
    if (token.kind === 'positional' && !isOfUnknown) rules.onWord(token.value, token.index)
    // There are no short flags, so what looks like several of them in one argument may be a secret.
    if (token.kind !== 'option' || token.index === last) continue
    last = token.index
    const row = rows.get(token.name)
    // The negation of --no-user-agent is --user-agent.
    const negated = rows.get(token.name.replace(/^no-/, '')) ?? rows.get(`no-${token.name}`)
    if (row !== undefined) readFlag(token, row)
    else {
      const problemsBefore = rules.problems.length
      readNegation(token, negated)
      const isUnknown = rules.problems.length > problemsBefore && token.value === undefined
      if (isUnknown) unknownAt = token.index
    }
  }
  return given

  function readFlag({ rawName: source, value, inlineValue }: FlagToken, row: OptionRow): void {
    const { separator, expected } = row.kind
    if (isSwitch(row)) {
      given.set(row.name, { source, text: value ?? 'true' })
    } else if (
      value === undefined ||
      (!inlineValue && value.startsWith('-') && rules.takesDashes !== true)
    ) {
      rules.problems.push(`${source}: expected ${expected} after it, got no value`)
    } else {
      const before = separator === undefined ? undefined : given.get(row.name)
      const text = before === undefined ? value : `${before.text}${separator}${value}`
      given.set(row.name, { source, text })
    }
  }

  /** Only a switch that may be on without the flag, by its default or another source, has a negation. */
  function readNegation({ rawName: source, value }: FlagToken, row: OptionRow | undefined): void {
    if (row?.default === undefined || !isSwitch(row))
      rules.problems.push(rules.unknown(source.slice(0, optionShownMax)))
    else if (value !== undefined) rules.problems.push(`${source}: takes no value`)
    else given.set(row.name, { source, text: 'false' })
  }
}

function isSwitch(row: OptionRow): boolean {
  return row.kind.placeholder === undefined
}
