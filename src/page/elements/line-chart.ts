/**
 * A chart of lines over time, drawn by uPlot, with a legend of its own: the legend shows what the caller says about each
 * line, and under the pointer the values at that time. A screen reader gets the sentence that the caller passes.
 * The colors come from the style, so a chart is made anew when the reader changes between light and dark.
 */
import uPlot from 'uplot'
import { cardElement, element, setElementText } from './element.ts'
import { formatTime } from './format.ts'
import type { PageContext } from '../frame/page-context.ts'
import type { PagePart } from './page-part.ts'

export interface ChartLine {
  readonly name: string
  /** The number of a color `--plot-N` of the style. */
  readonly color: number
}

export interface LineChartOptions {
  readonly title: string
  readonly lines: readonly ChartLine[]
  /** The length of the time axis in seconds. It ends at the last time. */
  readonly spanS: number
  /** It is as short as this while there are no values from before. Default: it always has its length. */
  readonly spanMinS?: number
  /** Stands in place of the lines while there are none. */
  readonly emptyText: string
  readonly formatValue: (value: number | null | undefined) => string
}

/** The times in Unix seconds, and the values of each line; null is a gap. A line without any value is not shown. */
export interface LineChartData {
  readonly times: readonly number[]
  readonly values: readonly (readonly (number | null)[])[]
  /** What the legend says about each line: its present value or its sum. */
  readonly notes: readonly string[]
  /** Says in a sentence what the chart shows now. */
  readonly sentence: string
}

const heightPx = 180
/** Room for a time below the axis. */
const timeSpacePx = 64

/** Makes a chart without lines. */
export function lineChart(
  { atEnd }: PageContext,
  options: LineChartOptions,
): PagePart<LineChartData> {
  const frame = element('div', { class: 'plot', role: 'img', hidden: true })
  const empty = element('p', { class: 'faint no-plot' }, options.emptyText)
  const legend = chartLegend(options)
  const root = cardElement(options.title, empty, frame, legend.root)
  const size = (): PlotSize => ({ width: Math.max(frame.clientWidth, 200), height: heightPx })
  let data: LineChartData = { times: [], values: [], notes: [], sentence: '' }
  let plot: uPlot | undefined

  const remake = (): void => {
    plot?.destroy()
    plot = frame.hidden
      ? undefined
      : new uPlot(
          {
            ...plotOptions(options, {
              beginS: () => beginOf(data),
              onPointed: (at) => legend.show({ ...data, at }),
            }),
            ...size(),
          },
          alignedOf(data),
          frame,
        )
  }
  const show = (shown: LineChartData): void => {
    data = shown
    frame.setAttribute('aria-label', `${options.title}: ${data.sentence}`)
    const isEmpty = !data.values.some(hasValue)
    empty.hidden = !isEmpty
    frame.hidden = isEmpty
    legend.show({ ...data, at: plot?.cursor.idx })
    if (isEmpty) return
    if (plot === undefined) remake()
    else plot.setData(alignedOf(data))
  }

  const resized = new ResizeObserver(() => {
    if (!frame.hidden) plot?.setSize(size())
  })
  resized.observe(root)
  const scheme = matchMedia('(prefers-color-scheme: dark)')
  scheme.addEventListener('change', remake)
  atEnd(() => {
    resized.disconnect()
    scheme.removeEventListener('change', remake)
    plot?.destroy()
  })
  return { root, show }
}

type PlotSize = Pick<uPlot.Options, 'width' | 'height'>

interface LegendData extends LineChartData {
  /** The position under the pointer, if it is over the chart. */
  readonly at: number | null | undefined
}

/** The sentence says the same to a screen reader, without a change in each second. */
function chartLegend({ lines, formatValue }: LineChartOptions): PagePart<LegendData> {
  const values = lines.map(() => element('span', { class: 'value' }))
  const items = lines.map(({ name, color }, nth) =>
    element(
      'li',
      { hidden: true },
      element('span', { class: `swatch plot-${color}` }),
      `${name} `,
      values[nth],
    ),
  )
  const time = element('li')
  const root = element('ul', { class: 'legend', 'aria-hidden': 'true' }, ...items, time)
  const show = ({ at, times, notes, ...data }: LegendData): void => {
    const isPointed = typeof at === 'number' && at < times.length
    for (const [nth, value] of values.entries()) {
      const line = data.values[nth] ?? []
      items[nth]?.toggleAttribute('hidden', !hasValue(line))
      setElementText(value, isPointed ? formatValue(line[at]) : (notes[nth] ?? ''))
    }
    setElementText(time, isPointed ? `at ${formatTime(times[at])}` : '')
  }
  return { root, show }
}

interface Plotted {
  /** The first time with a value. */
  readonly beginS: () => number
  readonly onPointed: (at: number | null | undefined) => void
}

function plotOptions(
  { lines, spanS, spanMinS = spanS }: LineChartOptions,
  { beginS, onPointed }: Plotted,
): Omit<uPlot.Options, keyof PlotSize> {
  const style = getComputedStyle(document.documentElement)
  const color = (name: string): string => style.getPropertyValue(`--${name}`).trim()
  const axis = {
    stroke: color('faint'),
    grid: { stroke: color('line'), width: 1 },
    ticks: { show: false },
  }
  const timesOf = (_plot: uPlot, at: number[]): string[] => at.map((s) => timeText(s, spanS))
  const series = lines.map((line) => {
    const stroke = color(`plot-${line.color}`)
    // A point is all that there is of a minute between two gaps.
    const points = { size: 3, fill: stroke, ...(spanS > 3_600 ? {} : { show: true }) }
    return { label: line.name, stroke, width: 1.75, points }
  })
  return {
    legend: { show: false },
    cursor: { drag: { x: false, y: false }, y: false },
    scales: {
      x: {
        range: (_plot, _min, max) => [
          Math.max(max - spanS, Math.min(beginS(), max - spanMinS)),
          max,
        ],
      },
      y: { range: (_plot, _min, max) => [0, Math.max(max, 1) * 1.1] },
    },
    axes: [
      { ...axis, size: 28, space: timeSpacePx, values: timesOf },
      { ...axis, size: 52 },
    ],
    series: [{}, ...series],
    hooks: { setCursor: [(plot) => onPointed(plot.cursor.idx)] },
  }
}

function beginOf({ times, values }: LineChartData): number {
  const first = times.findIndex((_, nth) => values.some((line) => (line[nth] ?? null) !== null))
  return times[first] ?? Number.POSITIVE_INFINITY
}

function hasValue(line: readonly (number | null)[]): boolean {
  return line.some((value) => value !== null)
}

/** Seconds matter only on a short axis. */
function timeText(unixSeconds: number, spanS: number): string {
  const text = formatTime(unixSeconds)
  return spanS > 600 ? text.slice(0, 5) : text
}

function alignedOf({ times, values }: LineChartData): uPlot.AlignedData {
  return [[...times], ...values.map((line) => [...line])]
}
