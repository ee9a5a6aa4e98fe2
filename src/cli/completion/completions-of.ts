/** What may come next on a command line. The scripts of shells ask for it at each Tab (completion-command.ts). Pure. */
import type { OptionRow } from '../../config/config-options.ts'
import { type CommandRow, optionsOf } from '../commands/command-row.ts'

/** Returns what fits the last of these words: lines with a word, or PATH for any file, and after a tab what it means. */
export function completionsOf(rows: readonly CommandRow[], words: readonly string[]): string[] {
  const last = words.at(-1) ?? ''
  // bash splits --dir=PATH into three words.
  const before = words.slice(0, -1).filter((word) => word !== '=')
  const row = rows.find(({ name }) => `${before.join(' ')} `.startsWith(`${name} `))
  if (row === undefined) return fitting(last, commandWords(rows, before))
  const [, inline, start = last] = /^--([^=]*)=(.*)$/s.exec(last) ?? []
  const flag = inline === undefined ? before.at(-1) : `--${inline}`
  const kind = optionsOf(row).find(({ name }) => `--${name}` === flag)?.kind
  if (kind?.placeholder === 'PATH') return ['PATH']
  if (kind?.placeholder !== undefined) return fitting(start, wordsOf({ kind, sentence: '' }))
  const options = optionsOf(row).map(({ name, sentence }) => [`--${name}`, sentence] as const)
  const values = row.kind === 'parsed' ? row.arguments.flatMap(wordsOf) : []
  return fitting(last, [...values, ...options, helpFlag])
}

/** A word, and what it means. */
type Candidate = readonly [string, string]

const helpFlag: Candidate = ['--help', 'Prints the help.']
const helpWord: Candidate = ['help', 'Lists the commands of a group.']
const versionFlag: Candidate = ['--version', 'Prints the version.']

/** What the first of two words means is all that the second one may be. */
function commandWords(rows: readonly CommandRow[], before: readonly string[]): Candidate[] {
  if (before.length === 1 && before[0] === 'help') return groupsOf(rows)
  const next = new Map<string, string>()
  for (const { name, sentence } of rows) {
    if (!name.startsWith(before.map((word) => `${word} `).join(''))) continue
    const [word = '', action = sentence] = name.split(' ').slice(before.length)
    next.set(word, next.has(word) ? `${next.get(word)}, ${action}` : action)
  }
  return [
    ...next,
    ...(next.size > 0 ? [helpFlag] : []),
    ...(before.length === 0 ? [helpWord, versionFlag] : []),
  ]
}

function groupsOf(rows: readonly CommandRow[]): Candidate[] {
  const names = new Set(rows.flatMap(({ group }) => group ?? []))
  return [...names, 'all'].map((name) => [name, 'Commands of this group.'])
}

function wordsOf({ kind, sentence }: Pick<OptionRow, 'kind' | 'sentence'>): Candidate[] {
  return (kind.words ?? []).map((word) => [word, sentence])
}

/** Options need a dash if there is something else: they would be in the way. */
function fitting(start: string, candidates: readonly Candidate[]): string[] {
  const needsDash = candidates.some(([word]) => !word.startsWith('-'))
  return candidates
    .filter(
      ([word]) => word.startsWith(start) && !(needsDash && start === '' && word.startsWith('-')),
    )
    .map(([word, sentence]) => `${word}\t${sentence.replaceAll('`', '')}`)
}
