/**
 * Tables of data that is read again and again, and what stands in place of a list without items. A column is all that the page
 * says about it, in one place. On a phone, the style makes a card of each row, in which every cell has its title before it.
 */
import { type Child, element, scrollElement } from './element.ts'
import type { PagePart } from './page-part.ts'
import { commandElement } from './copy-text.ts'

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
  /** Whether the cells name their rows, and the cards. */
  readonly isHead?: boolean
  /** Whether a cell is understood without its title, so that a card has none before it. */
  readonly isPlain?: boolean
}

export interface TableOptions<Row> {
  /** Classes of page.css for the place of the table. */
  readonly style?: string
  /** A row can be opened, and shows this below. */
  readonly more?: {
    /** Tells rows apart when they are read again. */
    keyOf(row: Row): string
    detailOf(row: Row): Child
  }
}

/**
 * Makes a table, which is hidden while it has no rows.
 *
 * @param name - says to a screen reader what is listed
 */
export function dataTable<Row>(
  name: string,
  columns: readonly Column<Row>[],
  { style = 'scroll', more }: TableOptions<Row> = {},
): PagePart<readonly Row[]> {
  const heads = columns.map((column) => headElement(column))
  const { root: table, body } = tableElement(name, heads)
  const root = scrollElement(name, table, style)
  root.hidden = true
  /** The keys of the rows that are open. */
  const open = new Set<string>()
  /** The rows that are shown, by their data: a row that is made anew would lose the focus and the selection. */
  let shown: ReadonlyMap<string, readonly HTMLElement[]> = new Map()
  /** The columns that have had something to say, by their positions. */
  const said = new Set<number>()
  const rowsOf = (row: Row): readonly HTMLElement[] =>
    more === undefined
      ? [rowElement(row, columns)]
      : openableRows({ row, columns, key: more.keyOf(row), detail: more.detailOf(row), open })
  const show = (rows: readonly Row[]): void => {
    root.hidden = rows.length === 0
    const wanted = new Map<string, readonly HTMLElement[]>()
    for (const row of rows) {
      let text = JSON.stringify(row)
      while (wanted.has(text)) text += ' '
      wanted.set(text, shown.get(text) ?? rowsOf(row))
    }
    const before = [...shown.values()].flat()
    shown = wanted
    replaceRows(body, before, [...wanted.values()].flat())
    hideSilent(table, columns, said)
  }
  return { root, show }
}

/** A table, and the place of its rows. */
export interface TableParts {
  readonly root: HTMLTableElement
  readonly body: HTMLElement
}

/** Makes an empty table. Its roles are said, as a browser forgets them where the style makes cards of rows. */
export function tableElement(name: string, heads: readonly HTMLElement[]): TableParts {
  const body = element('tbody', { role: 'rowgroup' })
  const caption = element('caption', { class: 'hidden-label' }, name)
  const head = element('thead', { role: 'rowgroup' }, element('tr', { role: 'row' }, ...heads))
  return { root: element('table', { role: 'table' }, caption, head, body), body }
}

/** Hides the columns that no row has said anything in. One that did stays, so that nothing jumps. */
function hideSilent<Row>(
  table: HTMLTableElement,
  columns: readonly Column<Row>[],
  said: Set<number>,
): void {
  const rows = [...table.rows].filter((row) => !row.classList.contains('more'))
  for (const nth of columns.keys()) {
    const [head, ...cells] = rows.map((row) => row.cells[nth])
    if (cells.some((cell) => cell?.dataset['none'] === undefined)) said.add(nth)
    for (const cell of [head, ...cells]) cell?.toggleAttribute('hidden', !said.has(nth))
  }
}

/** Changes only what differs. A focused link that is made anew has the focus again. */
function replaceRows(
  body: HTMLElement,
  before: readonly HTMLElement[],
  rows: readonly HTMLElement[],
): void {
  const active = document.activeElement
  const href = body.contains(active) ? (active?.getAttribute('href') ?? undefined) : undefined
  const wanted = new Set(rows)
  for (const row of before) if (!wanted.has(row)) row.remove()
  for (const [nth, row] of rows.entries()) {
    if (body.children[nth] !== row) body.insertBefore(row, body.children[nth] ?? null)
  }
  if (href === undefined || body.contains(document.activeElement)) return
  const again = [...body.querySelectorAll('a')].find((link) => link.getAttribute('href') === href)
  again?.focus({ preventScroll: true })
}

interface Openable<Row> {
  readonly row: Row
  readonly columns: readonly Column<Row>[]
  readonly key: string
  readonly detail: Child
  readonly open: Set<string>
}

/** Makes a row whose first cell is a button that opens the row below. */
function openableRows<Row>({
  row,
  columns: [first, ...others],
  key,
  detail,
  open,
}: Openable<Row>): readonly HTMLElement[] {
  if (first === undefined) return []
  const below = element('tr', { class: 'more', role: 'row' })
  const toggle = element('button', {
    type: 'button',
    class: 'link toggle',
    onclick: () => {
      if (!open.delete(key)) open.add(key)
      show()
    },
  })
  toggle.append(...childrenOf(first, row))
  const show = (): void => {
    below.hidden = !open.has(key)
    toggle.setAttribute('aria-expanded', `${!below.hidden}`)
  }
  below.append(element('td', { role: 'cell', colspan: others.length + 1 }, detail))
  show()
  return [rowElement(row, [{ ...first, cell: () => toggle }, ...others]), below]
}

/** Makes the title of a column. */
export function headElement<Row>(
  { title, style }: Column<Row>,
  child: Child = title,
): HTMLTableCellElement {
  return element('th', { scope: 'col', role: 'columnheader', class: style }, child)
}

/** Makes a row. */
export function rowElement<Row>(
  row: Row,
  columns: readonly Column<Row>[],
  rowAttributes: Readonly<Record<string, number>> = {},
): HTMLElement {
  const cells = columns.map((column) => cellElement(row, column))
  return element('tr', { role: 'row', ...rowAttributes }, ...cells)
}

/** What stands in a cell that has nothing to say. */
const noneTexts = ['', '–']

function cellElement<Row>(row: Row, column: Column<Row>): HTMLElement {
  const { title, style = '', isHead = false, isPlain = false } = column
  const tag = isHead ? 'th' : 'td'
  const cell = element(
    tag,
    {
      class: `${style} ${column.tone?.(row) ?? ''}`.trim() || undefined,
      title: column.hint?.(row),
      'data-title': isPlain ? undefined : title,
      ...(isHead ? { scope: 'row', role: 'rowheader' } : { role: 'cell' }),
    },
    ...childrenOf(column, row),
  )
  cell.toggleAttribute('data-none', noneTexts.includes(cell.textContent ?? ''))
  return cell
}

function childrenOf<Row>(column: Column<Row>, row: Row): Node[] {
  return [column.cell(row)].flat().flatMap((child) => {
    if (child === undefined) return []
    return [typeof child === 'string' ? document.createTextNode(child) : child]
  })
}

export interface EmptyState {
  /** What there is none of. */
  readonly title: string
  /** When there will be something. */
  readonly text: string
  /** What to type for that. */
  readonly command?: string
  /** Whether it is not shown at first, because the list may have items. */
  readonly isHidden?: boolean
}

/** Makes what stands in place of a list without items: it says what to do. */
export function emptyState({ title, text, command, isHidden = false }: EmptyState): HTMLElement {
  const root = element(
    'div',
    { class: 'empty' },
    element('strong', {}, title),
    text,
    command === undefined ? undefined : commandElement(command),
  )
  root.hidden = isHidden
  return root
}
