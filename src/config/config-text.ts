/** The option table as text: --help and docs/options.md. */
import { environmentName, type OptionRow, optionRows } from './config-options.ts'

/** The part of `postbote --help` about the options. */
export function helpText(): string {
  const lines = [
    'Options (a flag overrides the environment, the environment the file, the file the default):',
    '',
  ]
  for (const [, row] of optionRows) {
    lines.push(`  ${flagOf(row)}`, `      ${row.sentence}`)
    lines.push(`      ${capital(row.kind.expected)}. Default: ${plain(defaultOf(row))}.`, '')
  }
  lines.push(
    '  --config FILE',
    '      JSON file: an object with the names of options as keys.',
    '',
    '  --help',
    '      Prints this text and exits.',
    '',
    'Every option has an environment variable: for --http-port it is POSTBOTE_HTTP_PORT.',
  )
  return `${lines.join('\n')}\n`
}

/** The complete text of docs/options.md. */
export function optionsPage(): string {
  const lines = [
    '# Options',
    '',
    '<!-- Generated from src/config/config-options.ts by scripts/generate-docs.ts: change it there. -->',
    '',
    'This page lists the options of `postbote serve` for operators. Set an option with a flag (`--http-port 8081` or',
    '`--http-port=8081`), an environment variable, or a key in the JSON file that `--config FILE` (`POSTBOTE_CONFIG`) names.',
    'A flag takes precedence over the environment, the environment over the file, and the file over the default. Keys in the',
    'file are the names without the dashes. `--local` sets a switch and `--no-local` unsets it. Set a list with a repeated',
    'flag, a JSON array, or one text with commas (spaces for `--database`). An empty environment variable counts as unset. If a flag, a variable',
    '(`POSTBOTE_*`) or a key is unknown, or a value is outside its range, the server does not start and the error names it.',
    '',
    '| option | environment variable | value | default | meaning |',
    '|---|---|---|---|---|',
    ...optionRows.map(([, row]) => tableRow(row)),
  ]
  return `${lines.join('\n')}\n`
}

function tableRow(row: OptionRow): string {
  const cells = [
    `\`--${row.name}\``,
    `\`${environmentName(row.name)}\``,
    row.kind.expected,
    defaultOf(row),
    row.sentence,
  ]
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
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
