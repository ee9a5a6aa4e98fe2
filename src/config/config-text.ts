/** The option table as text: --help and docs/reference/options.md. */
import { type OptionRow, optionGroups, optionRows } from './config-options.ts'

/** The width of help that goes to no terminal. */
export const helpWidth = 118

/** Splits a text into lines of at most `width` characters. */
export function wrapped(text: string, width: number): readonly string[] {
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const line = lines.at(-1)
    if (line === undefined || line.length + 1 + word.length > width) lines.push(word)
    else lines[lines.length - 1] = `${line} ${word}`
  }
  return lines
}

/** What holds for all options, said once. Each is a line of --help and of the page. */
const rules = [
  'A flag overrides the environment, the environment the JSON file that --config PATH names, and the file the default.',
  'The option --http-port is POSTBOTE_HTTP_PORT in the environment, and the key http-port in the file.',
  'An option without a value is a switch: --local sets it, --no-local unsets it, and it is off without both.',
  'A list (VALUE,...) is one text with commas, a repeated flag, or a JSON array; for --database with spaces.',
  'A duration takes s, m, h or d, and a number alone is seconds.',
  'A size takes K, M, G or T, of 1024 each, and a number alone is bytes if nothing else is said.',
  'Other users of the machine can read flags: a URL with a password belongs in the environment or the file.',
]

/** The part of `postbote serve --help` about the options. */
export function helpText(width = helpWidth): string {
  const lines = rules.flatMap((rule) => wrapped(rule, width))
  for (const [group, heading] of Object.entries(optionGroups)) {
    lines.push('', `${heading}:`)
    for (const row of rowsOf(group)) {
      const text = plain(explained(row))
      lines.push(`  ${flagOf(row)}`, ...wrapped(text, width - 6).map((line) => `      ${line}`))
    }
  }
  return `${lines.join('\n')}\n`
}

/** The complete text of docs/reference/options.md. */
export function optionsPage(): string {
  const lines = [
    '# Options',
    '',
    '<!-- Generated from src/config/config-options.ts by scripts/generate-docs.ts: change it there. -->',
    '',
    'This page lists the options of `postbote serve` for operators.',
    '',
    ...rules.map(
      (rule) => `- ${rule.replaceAll(/--[a-z-]+|POSTBOTE_[A-Z_]+|\bhttp-port\b/g, '`$&`')}`,
    ),
    '- An empty environment variable counts as unset. If a flag, a variable (`POSTBOTE_*`) or a key is unknown, or a value is outside its range, the server does not start and the error names it.',
    ...Object.entries(optionGroups).flatMap(([group, heading]) => [
      '',
      `## ${heading}`,
      '',
      ...rowsOf(group).map((row) => `- \`${flagOf(row)}\`: ${explained(row)}`),
    ]),
  ]
  return `${lines.join('\n')}\n`
}

function rowsOf(group: string): readonly OptionRow[] {
  return optionRows.map(([, row]) => row).filter((row) => row.group === group)
}

/**
 * Returns an option as it is typed.
 *
 * @param marked - marks what stands for a value
 */
export function flagOf(
  { name, kind }: OptionRow,
  marked = (value: string): string => value,
): string {
  const { placeholder, separator } = kind
  if (placeholder === undefined) return `--${name}`
  return `--${name} ${marked(`${placeholder}${separator === undefined ? '' : `${separator}...`}`)}`
}

/** Returns what an option does, its values and its default. What its placeholder says already is left out, and what is nothing. */
export function explained(row: OptionRow): string {
  const { expected, placeholder } = row.kind
  if (placeholder === undefined) return row.sentence
  const values = expected === `a ${placeholder.toLowerCase()}` ? '' : ` Expected: ${expected}.`
  const usual = defaultOf(row)
  return `${row.sentence}${values}${usual === undefined ? '' : ` Default: ${usual}.`}`
}

/** Returns the default as a person would give it. */
function defaultOf({ kind, default: usual, defaultShown }: OptionRow): string | undefined {
  if (defaultShown !== undefined) return defaultShown === 'none' ? undefined : defaultShown
  return usual === undefined ? undefined : `\`${kind.shortest?.(usual) ?? usual}\``
}

/** Returns a text without the marks of Markdown. */
export function plain(text: string): string {
  return text.replaceAll('`', '')
}
