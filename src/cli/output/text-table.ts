/**
 * Tables for people. On a terminal, a table is no wider than the terminal:
 *
 *   - its columns are in the order of their importance, and the last ones are left out until the others fit;
 *   - a name, which somebody has chosen, is cut at its end, and `…` stands for the rest;
 *   - a reason, such as an error, stays in its place if all fit there. Otherwise it has the rest of the line as the last
 *     column, and one that does not fit there goes below its row, indented and whole;
 *   - nothing else is ever cut: half an id or half a time says nothing.
 *
 * Elsewhere, such as in a pipe, a table is as wide as it is. Pure.
 *
 * Some cells come from outside, such as the error of a webhook, so control characters are replaced: they could move the
 * cursor of the terminal, or do worse.
 */
import { visible } from '../../kit/text/visible.ts'
import { cutText, foldText, widthOf } from './width-of.ts'

/** What may be done to the cells of a column so that a table fits. */
export type ColumnKind = 'whole' | 'number' | 'name' | 'reason'

export interface TableRows {
  readonly head: readonly string[]
  /** By the columns; those that are missing are whole. */
  readonly kinds?: readonly ColumnKind[]
  readonly rows: readonly (readonly string[])[]
  /** Whether no column may be left out. */
  readonly isWhole?: boolean
}

export interface FittedTable {
  readonly lines: readonly string[]
  /** The columns that were left out, by their numbers. */
  readonly left: readonly number[]
}

/** The cell of a value that is not there. */
export const emptyCell = '-'

/** A name is cut to this many characters at least: a usual username is not longer. */
const nameWidthMin = 20
/** A column of reasons is not narrower: a shorter line of words is hard to read. */
const reasonWidthMin = 24
const gap = '  '
const indent = '    '

interface Column {
  readonly nth: number
  readonly name: string
  readonly kind: ColumnKind
  readonly cells: readonly string[]
  readonly width: number
}

/**
 * Returns a table as lines, the head first.
 *
 * @param widthMax - in characters; Infinity cuts nothing
 */
export function textTable(table: TableRows, widthMax = Infinity): FittedTable {
  const columns = columnsOf(table)
  if (widthOfAll(columns) <= widthMax) return { lines: rowLines(columns), left: [] }
  const isBelow = isReasonBelow(columns, widthMax)
  const reasons = columns.filter(({ kind }) => isBelow && kind === 'reason')
  const others = columns.filter((column) => !reasons.includes(column))
  let shown = others.map((column) => cutColumn(column, nameWidthMin))
  while (table.isWhole !== true && shown.length > 1 && widthOfAll(shown) > widthMax) {
    shown = shown.slice(0, -1)
  }
  const left = others.slice(shown.length).map(({ nth }) => nth)
  const fitted = widened(others.slice(0, shown.length), widthMax - widthOfAll(shown))
  const { beside, below } = placedReasons(reasons, widthMax - widthOfAll(fitted) - gap.length)
  const [head = '', ...rows] = rowLines([...fitted, ...beside])
  const lines = rows.flatMap((row, nth) => [row, ...linesBelow(below, nth + 1, widthMax)])
  return { lines: [head, ...lines], left }
}

/** A single reason that fits whole beside what is more important than it stays there: less important columns give way. */
function isReasonBelow(columns: readonly Column[], widthMax: number): boolean {
  const nth = columns.findIndex(({ kind }) => kind === 'reason')
  const isSingle = columns.findLastIndex(({ kind }) => kind === 'reason') === nth
  const before = columns.slice(0, nth + 1).map((column) => cutColumn(column, nameWidthMin))
  return !isSingle || widthOfAll(before) > widthMax
}

function columnsOf({ head, kinds = [], rows }: TableRows): readonly Column[] {
  return head.map((name, nth) => {
    const cells = [name, ...rows.map((row) => row[nth] ?? '')].map(harmless)
    return { nth, name, kind: kinds[nth] ?? 'whole', cells, width: widestOf(cells) }
  })
}

function widestOf(cells: readonly string[]): number {
  return cells.reduce((widest, each) => Math.max(widest, widthOf(each)), 0)
}

function widthOfAll(columns: readonly Column[]): number {
  return columns.reduce((sum, { width }) => sum + width + gap.length, -gap.length)
}

/** Names become narrower, and nothing else. */
function cutColumn(column: Column, widthMax: number): Column {
  if (column.kind !== 'name' || column.width <= widthMax) return column
  return { ...column, cells: column.cells.map((each) => cutText(each, widthMax)), width: widthMax }
}

/** Names get what the other columns leave, the first ones first. */
function widened(columns: readonly Column[], spare: number): readonly Column[] {
  let rest = Math.max(0, spare)
  return columns.map((column) => {
    const least = cutColumn(column, nameWidthMin)
    const more = Math.min(rest, column.width - least.width)
    rest -= more
    return cutColumn(column, least.width + more)
  })
}

interface PlacedReasons {
  readonly beside: readonly Column[]
  readonly below: readonly Column[]
}

/** A single column of reasons stands beside the others with what fits there. What does not fit, and several, go below. */
function placedReasons(reasons: readonly Column[], room: number): PlacedReasons {
  const [only] = reasons
  if (only === undefined || reasons.length > 1 || room < reasonWidthMin) {
    return { beside: [], below: reasons }
  }
  const fits = (cell: string): boolean => widthOf(cell) <= room
  const cells = only.cells.map((each) => (fits(each) ? each : ''))
  const isAnyBeside = cells.some((each, nth) => nth > 0 && each !== '' && each !== emptyCell)
  if (!isAnyBeside) return { beside: [], below: reasons }
  const beside = { ...only, cells, width: widestOf(cells) }
  return {
    beside: [beside],
    below: [{ ...only, cells: only.cells.map((each) => (fits(each) ? '' : each)) }],
  }
}

function linesBelow(columns: readonly Column[], nth: number, widthMax: number): readonly string[] {
  return columns.flatMap(({ name, cells }) => {
    const cell = cells[nth] ?? ''
    if (cell === '' || cell === emptyCell) return []
    const text = columns.length === 1 ? cell : `${name}: ${cell}`
    return foldText(text, Math.max(1, widthMax - indent.length)).map((line) => indent + line)
  })
}

function rowLines(columns: readonly Column[]): readonly string[] {
  const count = columns[0]?.cells.length ?? 0
  return Array.from({ length: count }, (_, nth) =>
    columns
      .map(({ cells, width, kind }) => padded(cells[nth] ?? '', width, kind))
      .join(gap)
      .trimEnd(),
  )
}

function padded(cell: string, width: number, kind: ColumnKind): string {
  const blanks = ' '.repeat(Math.max(0, width - widthOf(cell)))
  return kind === 'number' ? blanks + cell : cell + blanks
}

/**
 * Returns pairs of a name and a value as lines, the values in a column of their own, in which they go on if they are longer
 * than the line.
 *
 * @param widthMax - in characters; Infinity folds nothing
 */
export function nameLines(
  pairs: readonly (readonly [name: string, value: string])[],
  widthMax = Infinity,
): readonly string[] {
  const shown = pairs.map(([name, value]) => [harmless(name), harmless(value)] as const)
  const column = widestOf(shown.map(([name]) => name)) + gap.length
  // On a terminal that is hardly wider than the names, the values have lines of their own.
  const isNarrow = widthMax - column < reasonWidthMin
  return shown.flatMap(([name, value]) => {
    if (isNarrow) return [name, ...foldText(value, widthMax - gap.length).map((line) => gap + line)]
    const [first = '', ...rest] = foldText(value, widthMax - column)
    return [
      `${name.padEnd(column)}${first}`.trimEnd(),
      ...rest.map((line) => ' '.repeat(column) + line),
    ]
  })
}

/** Returns the text without characters that nobody can see, or that a terminal may act upon. */
export function harmless(text: string): string {
  return visible(text, '?')
}
