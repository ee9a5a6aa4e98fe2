/**
 * A bar chart as SVG text: one bar per case, and a mark at its target. The colors follow the reader's light or dark
 * scheme if the viewer supports that (GitHub does); the page provides the background.
 */

export interface Bar {
  readonly label: string
  readonly value: number
  readonly target: number | undefined
}

export interface ChartOptions {
  readonly title: string
  /** Whether shorter bars are better. */
  readonly isLowerBetter: boolean
  readonly unit: string
  readonly bars: readonly Bar[]
}

const width = 760
const labelWidth = 190
const valueWidth = 150
const barHeight = 16
const rowHeight = 26
const top = 44
const bottom = 26
const plotWidth = width - labelWidth - valueWidth

const style = `
text { font: 12px system-ui, sans-serif; fill: #1f2328 }
.title { font-size: 14px; font-weight: 600 }
.faint { fill: #59636e }
.bar { fill: #2f6fbd }
.missed { fill: #bf5b17 }
.axis { stroke: #8c959f; stroke-width: 1 }
.target { stroke: #1f2328; stroke-width: 2 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 }
.faint { fill: #9198a1 }
.bar { fill: #5b9bea }
.missed { fill: #e8935a }
.target { stroke: #e6edf3 }
}`

export function barChart(options: ChartOptions): string {
  const { title, isLowerBetter, bars } = options
  const valueMax = Math.max(...bars.flatMap(({ value, target }) => [value, target ?? 0]))
  const scale = valueMax > 0 ? plotWidth / valueMax : 0
  const height = top + bars.length * rowHeight + bottom
  const marks = bars.some(({ target }) => target !== undefined) ? '; a mark shows the target' : ''
  const hint = `${isLowerBetter ? 'shorter' : 'longer'} is better${marks}`
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">`,
    `<title>${escaped(title)}</title>`,
    `<style>${style}\n</style>`,
    `<text class="title" x="8" y="20">${escaped(title)}</text>`,
    ...bars.flatMap((bar, index) =>
      barLines(bar, { ...options, scale, y: top + index * rowHeight }),
    ),
    `<line class="axis" x1="${labelWidth}" y1="${top - 8}" x2="${labelWidth}" y2="${height - bottom}"/>`,
    `<text class="faint" x="${labelWidth}" y="${height - 8}">${hint}</text>`,
    '</svg>',
    '',
  ].join('\n')
}

interface Place extends ChartOptions {
  readonly scale: number
  readonly y: number
}

function barLines(bar: Bar, { scale, y, unit, isLowerBetter }: Place): string[] {
  const { label, value, target } = bar
  const isMissed = target !== undefined && (isLowerBetter ? value > target : value < target)
  const end = labelWidth + value * scale
  const at = target === undefined ? 0 : labelWidth + target * scale
  const text = `${rounded(value)} ${unit}${target === undefined ? '' : ` (target ${rounded(target)})`}`
  const middle = y + barHeight - 4
  return [
    `<text x="${labelWidth - 8}" y="${middle}" text-anchor="end">${escaped(label)}</text>`,
    `<rect class="${isMissed ? 'missed' : 'bar'}" x="${labelWidth}" y="${y}" width="${(value * scale).toFixed(1)}" height="${barHeight}"/>`,
    ...(target === undefined
      ? []
      : [
          `<line class="target" x1="${at.toFixed(1)}" y1="${y - 3}" x2="${at.toFixed(1)}" y2="${y + barHeight + 3}"/>`,
        ]),
    `<text x="${(Math.max(end, at) + 8).toFixed(1)}" y="${middle}">${escaped(text)}</text>`,
  ]
}

function rounded(value: number): string {
  return value >= 100 ? Math.round(value).toLocaleString('en') : String(Number(value.toFixed(2)))
}

/** Returns a text as it may stand in SVG. */
export function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
