/** What a chart shows as a table, for who cannot see it, or wants the numbers. It is filled while it is open. */
import { chartFormats, chartRows, type ChartValue } from './chart-formats.ts'
import { element, scrollElement, setElementText } from './element.ts'
import { formatTime } from './format.ts'
import type { PagePart } from './page-part.ts'

export interface ChartTableData {
  readonly times: readonly number[]
  readonly lines: readonly {
    readonly name: string
    readonly values: readonly (number | null)[]
  }[]
}

/** Makes a table that is closed, of a chart with this title. */
export function chartTable(title: string, values: ChartValue): PagePart<ChartTableData> {
  const format = chartFormats[values]
  const head = element('thead')
  const body = element('tbody')
  const table = element('table', {}, head, body)
  const root = element(
    'details',
    { class: 'as-table', ontoggle: () => fill() },
    element('summary', {}, 'As a table'),
    scrollElement(`${title}, as a table`, table, 'scroll'),
  )
  let data: ChartTableData = { times: [], lines: [] }
  let shape = ''

  const fill = (): void => {
    if (!root.open) return
    const { times, lines } = data
    const rows = chartRows(
      times,
      lines.map((line) => line.values),
    )
    const texts = rows.map((row) => [formatTime(row.timeS), ...row.values.map(format)])
    const names = ['Time', ...lines.map(({ name }) => name)]
    const now = `${names.join()} ${rows.map(({ timeS }) => timeS).join()}`
    if (now !== shape) {
      shape = now
      head.replaceChildren(rowOf('th', names, { scope: 'col' }))
      body.replaceChildren(...texts.map((cells) => rowOf('td', cells)))
    }
    for (const [nth, cells] of texts.entries()) {
      for (const [at, text] of cells.entries()) {
        const cell = body.rows[nth]?.cells[at]
        if (cell !== undefined) setElementText(cell, text)
      }
    }
  }
  const show = (shown: ChartTableData): void => {
    data = shown
    fill()
  }
  return { root, show }
}

function rowOf(
  tag: 'th' | 'td',
  texts: readonly string[],
  attributes: { readonly scope?: string } = {},
): HTMLElement {
  return element('tr', {}, ...texts.map((text) => element(tag, attributes, text)))
}
