/** What a shell can complete, derived from the table of commands. The script of each shell is made of this. Pure. */
import { type CommandRow, optionsOf, synopsisOf } from '../commands/command-row.ts'

/** A word that may come next, and what it means. */
export interface Candidate {
  readonly word: string
  readonly sentence: string
}

/** What may come after these words of the command line. */
export interface CompletionState {
  /** The words after the program: none, `bots`, or `bots list`. */
  readonly words: string
  readonly commands: readonly Candidate[]
  readonly options: readonly (Candidate & { readonly value: ValueCompletion })[]
}

/** How the value after an option is completed; `none` is a switch, and `any` a value that cannot be known. */
export type ValueCompletion = 'none' | 'any' | 'path' | readonly string[]

export interface CompletionModel {
  readonly states: readonly CompletionState[]
  /** The first words of commands that have two. */
  readonly groups: readonly string[]
}

const helpOption = { word: '--help', sentence: 'Prints the help.', value: 'none' } as const
const versionOption = { word: '--version', sentence: 'Prints the version.', value: 'none' } as const

export function completionModel(rows: readonly CommandRow[]): CompletionModel {
  const groups = [...new Set(rows.filter(isOfGroup).map((row) => firstWord(row)))]
  const first = [...new Set(rows.map((row) => firstWord(row)))].map((word) => ({
    word,
    sentence: sentenceOfFirst(word, rows),
  }))
  return {
    groups,
    states: [
      { words: '', commands: first, options: [helpOption, versionOption] },
      ...groups.map((group) => groupState(group, rows)),
      ...rows.map((row) => commandState(row)),
    ],
  }
}

/**
 * Returns the options of all states by the completion of their values, each once. An option whose values are known in one
 * command offers them in all: `--update-type` also adds types that no list has.
 */
export function optionsByValue({
  states,
}: CompletionModel): ReadonlyMap<string, { readonly value: ValueCompletion; words: string[] }> {
  const found = new Map<string, { readonly value: ValueCompletion; words: string[] }>()
  const all = states.flatMap(({ options }) => options)
  const known = new Set(all.filter(({ value }) => Array.isArray(value)).map(({ word }) => word))
  for (const { word, value } of all) {
    if (value === 'any' && known.has(word)) continue
    const key = String(value)
    const same = found.get(key) ?? { value, words: [] }
    if (!same.words.includes(word)) same.words.push(word)
    found.set(key, same)
  }
  found.delete('none')
  return found
}

function isOfGroup({ name }: CommandRow): boolean {
  return name.includes(' ')
}

function firstWord({ name }: CommandRow): string {
  return name.replace(/ .*/, '')
}

function sentenceOfFirst(word: string, rows: readonly CommandRow[]): string {
  const own = rows.find(({ name }) => name === word)
  if (own !== undefined) return own.sentence
  const actions = groupRows(word, rows).map(({ name }) => name.slice(word.length + 1))
  return actions.join(', ')
}

function groupRows(group: string, rows: readonly CommandRow[]): readonly CommandRow[] {
  return rows.filter(({ name }) => name.startsWith(`${group} `))
}

function groupState(group: string, rows: readonly CommandRow[]): CompletionState {
  const commands = groupRows(group, rows).map(({ name, sentence }) => ({
    word: name.slice(group.length + 1),
    sentence,
  }))
  return { words: group, commands, options: [helpOption] }
}

function commandState(row: CommandRow): CompletionState {
  const words = row.kind === 'parsed' ? row.arguments.flatMap(({ kind }) => kind.words ?? []) : []
  return {
    words: row.name,
    commands: words.map((word) => ({ word, sentence: synopsisOf(row) })),
    options: [
      ...optionsOf(row).map(({ name, sentence, kind }) => ({
        word: `--${name}`,
        sentence,
        value: valueOf(kind),
      })),
      helpOption,
    ],
  }
}

function valueOf(kind: CommandRow['options'][number]['kind']): ValueCompletion {
  if (kind.placeholder === undefined) return 'none'
  if (kind.words !== undefined) return kind.words
  return kind.placeholder === 'PATH' ? 'path' : 'any'
}
