/** The option table as text: --help and docs/reference/options.md. */
import { type OptionRow, optionRows } from './config-options.ts'

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

/** The part of `postbote --help` about the options. */
export function helpText(width = helpWidth): string {
  const indented = (text: string): string[] =>
    wrapped(text, width - 6).map((line) => `      ${line}`)
  const lines = [
    ...wrapped(
      'Options (a flag overrides the environment, the environment the file, the file the default):',
      width,
    ),
    '',
  ]
  for (const [, row] of optionRows) {
    lines.push(`  ${flagOf(row)}`, ...indented(row.sentence))
    lines.push(...indented(`${capital(row.kind.expected)}. Default: ${plain(defaultOf(row))}.`), '')
  }
  lines.push(
    '  --config FILE',
    '      JSON file: an object with the names of options as keys.',
    '',
    '  --help',
    '      Prints this text and exits.',
    '',
    ...wrapped(
      'Every option has an environment variable: for --http-port it is POSTBOTE_HTTP_PORT.',
      width,
    ),
  )
  return `${lines.join('\n')}\n`
}

/** The complete text of docs/reference/options.md. */
export function optionsPage(): string {
  const lines = [
    '# Options',
    '',
    '<!-- Generated from src/config/config-options.ts by scripts/generate-docs.ts: change it there. -->',
    '',
    'This page lists the options of `postbote serve` for operators. Set an option with a flag (`--http-port 8081` or',
    '`--http-port=8081`), an environment variable (`POSTBOTE_HTTP_PORT`), or a key in the JSON file that `--config FILE` names.',
    'A flag takes precedence over the environment, the environment over the file, and the file over the default. Keys in the',
    'file are the names without the dashes. `--local` sets a switch and `--no-local` unsets it. Set a list with a repeated',
    'flag, a JSON array, or one text with commas (spaces for `--database`). An empty environment variable counts as unset. If a flag, a variable',
    '(`POSTBOTE_*`) or a key is unknown, or a value is outside its range, the server does not start and the error names it.',
    '',
    ...optionRows.map(([, row]) => optionLine(row)),
  ]
  return `${lines.join('\n')}\n`
}

function optionLine(row: OptionRow): string {
  return `- \`--${row.name}\` (${row.kind.expected}; default ${defaultOf(row)}): ${row.sentence}`
}

function flagOf(row: OptionRow): string {
  if (row.kind.placeholder === undefined) return `--${row.name}, --no-${row.name}`
  return `--${row.name} ${row.kind.placeholder}${row.kind.separator === undefined ? '' : ' ...'}`
}

function defaultOf(row: OptionRow): string {
  if (row.defaultShown !== undefined) return row.defaultShown
  return typeof row.default === 'string' ? `\`${row.default}\`` : 'none'
}

function plain(text: string): string {
  return text.replaceAll('`', '')
}

/** Begins a sentence with a capital letter, unless it begins with a URL. */
function capital(text: string): string {
  return /^[a-z]+ /.test(text) ? text.charAt(0).toUpperCase() + text.slice(1) : text
}
