/**
 * The table of bot frameworks in docs/use/frameworks.md. It has a row per framework, a column per scenario of test/clients, and
 * in each cell the result of the last run. A run writes a column to dist/clients/<column>.json.
 *
 * The table is updated cell by cell, because a run may be incomplete: it may cover only part of a path, or run on a
 * machine without some framework. Those cells keep the result of an earlier run.
 */

export const columns = ['polling', 'webhook', 'secret', 'restart', 'conflict'] as const
export type Column = (typeof columns)[number]

export interface Cell {
  readonly framework: string
  /** Undefined if the framework is not installed. */
  readonly version: string | undefined
  /** Why the framework may not be installed. */
  readonly missing: string
  readonly result: 'passed' | 'failed' | 'skipped'
  /** What the framework did if it passed, or why it was skipped. */
  readonly saw: string
}

interface Row {
  version: string
  readonly cells: Map<Column, string>
}

const begin = '<!-- The table is written by `npm run docs`, after a run of the tests. -->'
const end = '<!-- End of the table. -->'

/** Returns the page with a column of a run; the frameworks are in the order of the run. */
export function withColumn(page: string, column: Column, cells: readonly Cell[]): string {
  const from = page.indexOf(begin) + begin.length
  const to = page.indexOf(end)
  if (from < begin.length || to < from) throw new Error('the page has no markers for the table')
  const before = rowsOf(page.slice(from, to))
  const rows = new Map(
    cells.map((cell) => [cell.framework, withCell(before.get(cell.framework), column, cell)]),
  )
  return `${page.slice(0, from)}\n\n${tableOf(rows)}\n${page.slice(to)}`
}

function withCell(before: Row | undefined, column: Column, cell: Cell): Row {
  const row = before ?? { version: '', cells: new Map() }
  const isInstalled = cell.version !== undefined
  if (isInstalled || isUnknown(row.version)) row.version = versionOf(cell)
  if (isInstalled || isUnknown(row.cells.get(column))) row.cells.set(column, textOf(cell))
  return row
}

function versionOf({ version, missing }: Cell): string {
  return version ?? `– (${missing})`
}

function textOf({ version, result, saw }: Cell): string {
  if (version === undefined) return '–'
  if (result === 'skipped') return `– (${saw})`
  return result === 'failed' ? '**fails**' : saw
}

function isUnknown(text = ''): boolean {
  return text === '' || text.startsWith('–')
}

function rowsOf(table: string): Map<string, Row> {
  const lines = table.split('\n').filter((line) => line.startsWith('|'))
  return new Map(
    lines.slice(2).map((line) => {
      const [name = '', version = '', ...texts] = line.split('|').slice(1, -1).map(trimmed)
      return [
        name,
        { version, cells: new Map(columns.map((each, nth) => [each, texts[nth] ?? ''])) },
      ]
    }),
  )
}

function tableOf(rows: ReadonlyMap<string, Row>): string {
  const lines = [...rows].map(([name, { version, cells }]) =>
    lineOf([name, version, ...columns.map((column) => cells.get(column) ?? '')]),
  )
  const head = ['framework', 'version', ...columns]
  return [lineOf(head), `|${'---|'.repeat(head.length)}`, ...lines, ''].join('\n')
}

function lineOf(texts: readonly string[]): string {
  return `| ${texts.join(' | ')} |`
}

function trimmed(text: string): string {
  return text.trim()
}
