/** Tables of data that is read again and again. A column is all that the page says about it, in one place. */
import { type Child, element, scrollElement } from './element.ts'
import type { PagePart } from './page-part.ts'

/** A column of rows. */
export interface Column<Row> {
  readonly title: string
  cell(row: Row): Child | readonly Child[]
  /** Classes of page.css for the title and the cells. */
  readonly style?: string
  /** A class that says how bad the cell is. */
  tone?(row: Row): string
  /** What the reader sees of a cell under the pointer. */
  hint?(row: Row): string
  /** Whether the cells name their rows. */
  readonly isHead?: boolean
}

/**
 * Makes a table, which is hidden while it has no rows.
 *
 * @param name - says to a screen reader what is listed
 * @param style - classes of page.css for the place of the table
 */
export function dataTable<Row>(
  name: string,
  columns: readonly Column<Row>[],
  style = 'scroll',
): PagePart<readonly Row[]> {
  const body = element('tbody')
  const caption = element('caption', { class: 'hidden-label' }, name)
  const heads = columns.map((column) => headElement(column))
  const head = element('thead', {}, element('tr', {}, ...heads))
  const table = element('table', {}, caption, head, body)
  const root = scrollElement(name, table, style)
  root.hidden = true
  let shown = ''
  const show = (rows: readonly Row[]): void => {
    root.hidden = rows.length === 0
    // A row that is made anew would lose the focus.
    const text = JSON.stringify(rows)
    if (text === shown) return
    shown = text
    body.replaceChildren(...rows.map((row) => rowElement(row, columns)))
  }
  return { root, show }
}

/** Makes the title of a column. */
export function headElement<Row>(
  { title, style }: Column<Row>,
  child: Child = title,
): HTMLTableCellElement {
  return element('th', { scope: 'col', class: style }, child)
}

/** Makes a row. */
export function rowElement<Row>(
  row: Row,
  columns: readonly Column<Row>[],
  rowAttributes: Readonly<Record<string, number>> = {},
): HTMLElement {
  const cells = columns.map((column) => {
    const style = `${column.style ?? ''} ${column.tone?.(row) ?? ''}`.trim()
    const attributes = { class: style || undefined, title: column.hint?.(row) }
    const children = [column.cell(row)].flat()
    return column.isHead === true
      ? element('th', { scope: 'row', ...attributes }, ...children)
      : element('td', attributes, ...children)
  })
  return element('tr', rowAttributes, ...cells)
}
