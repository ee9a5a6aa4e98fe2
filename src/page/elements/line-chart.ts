/**
 * A chart of lines over time, drawn by uPlot: each line has its name at its end, if there is room, and in a legend of its own, which
 * shows what the caller says about each line, and the values under the pointer or at the time that arrow keys choose. A screen reader
 * gets the sentence that the caller passes, and a table.
 * The colors come from the style, so a chart is made anew when the reader changes between light and dark.
 */
import uPlot from 'uplot'
import {
  chartFormats,
  type ChartValue,
  durationSteps,
  durationStepText,
  namePlaces,
  shortestShownMs,
} from './chart-formats.ts'
import { chartTable } from './chart-table.ts'
import { cardElement, element, setElementText } from './element.ts'
import { formatTime } from './format.ts'
import type { PageContext } from '../frame/page-context.ts'
import type { PagePart } from './page-part.ts'

/** The colors of lines by what they mean, which page.css has. */
export type ChartMeaning =
  | 'pushed'
  | 'fetched'
  | 'confirmed'
  | 'delivered'
  | 'failed'
  | 'timed-out'
  | 'connection-failed'
  | 'tls-failed'
  | 'refused'
  | 'expired'
  | 'p50'
  | 'p99'

export interface ChartLine {
  readonly name: string
  readonly color: ChartMeaning
  /** Set for a line that has the color of another one. */
  readonly isDashed?: boolean
}

export interface LineChartOptions {
  readonly title: string
  readonly lines: readonly ChartLine[]
  /** Those of durations are drawn on a scale of steps, each about ten times the one before. */
  readonly values: ChartValue
  /** The length of the time axis in seconds. It ends at the last time. */
  readonly spanS: number
  /** It is as short as this while there are no values from before. */
  readonly spanMinS: number
  /** Stands in place of the lines while there are none. */
  readonly emptyText: string
}

/** The times in Unix seconds, and the values of each line; null is a gap. A line without any value is not shown. */
export interface LineChartData {
  readonly times: readonly number[]
  readonly values: readonly (readonly (number | null)[])[]
  /** Where the time axis may begin, if the values before are zeros that say nothing. */
  readonly beginS?: number | undefined
  /** What the legend says about each line: its present value or its sum. */
  readonly notes: readonly string[]
  /** Says in a sentence what the chart shows now. */
  readonly sentence: string
}

const heightPx = 180
/** Room for a time below the axis. */
const timeSpacePx = 64
const textPx = 12
/** Half of the lowest label of values is below the lines, and no time touches it. */
const timeGapPx = 10
const font = `${textPx}px system-ui, sans-serif`
/** Between a label of the axis of values and the lines. */
const labelGapPx = 10
/** Between the end of a line and its name, and between a name and the edge. */
const nameGapPx = 6
/** Half of the last time below the axis. */
const rightPx = 18
/** The names of lines have at most this part of the width. Chosen: on a phone, the lines need it, and the legend has the names. */
const nameShareMax = 0.25

/** Makes a chart without lines. */
export function lineChart(
  { atEnd }: PageContext,
  options: LineChartOptions,
): PagePart<LineChartData> {
  const frame = element('div', {
    class: 'plot',
    role: 'img',
    tabindex: 0,
    hidden: true,
  })
  // Nothing is known before the first data.
  const empty = element('p', { class: 'faint no-plot' }, 'Reading…')
  const legend = chartLegend(options)
  const table = chartTable(options.title, options.values)
  const root = cardElement(options.title, empty, frame, legend.root, table.root)
  const size = (): PlotSize => ({ width: Math.max(frame.clientWidth, 200), height: heightPx })
  let data: LineChartData = { times: [], values: [], notes: [], sentence: '' }
  let plot: uPlot | undefined

  const point = (at: number | null | undefined): void => legend.show({ ...data, at })
  const remake = (): void => {
    plot?.destroy()
    plot = frame.hidden
      ? undefined
      : new uPlot(
          { ...plotOptions(options, { data: () => data, point }), ...size() },
          alignedOf(data, options),
          frame,
        )
  }
  const show = (shown: LineChartData): void => {
    data = shown
    frame.setAttribute('aria-label', `${options.title}: ${data.sentence}`)
    const isEmpty = !data.values.some(hasValue)
    setElementText(empty, options.emptyText)
    empty.hidden = !isEmpty
    root.classList.toggle('nothing', isEmpty)
    frame.hidden = isEmpty
    table.root.hidden = isEmpty
    point(plot?.cursor.idx)
    const lines = options.lines.map(({ name }, nth) => ({ name, values: data.values[nth] ?? [] }))
    table.show({ times: data.times, lines: lines.filter(({ values }) => hasValue(values)) })
    if (isEmpty) return
    if (plot === undefined) remake()
    else plot.setData(alignedOf(data, options))
  }
  frame.addEventListener('keydown', (event) => {
    if (plot !== undefined && pointByKey(plot, event.key)) event.preventDefault()
  })
  frame.addEventListener('blur', () => plot?.setCursor({ left: -10, top: -10 }))

  const resized = new ResizeObserver(() => {
    if (!frame.hidden) plot?.setSize(size())
  })
  resized.observe(root)
  const scheme = matchMedia('(prefers-color-scheme: dark)')
  scheme.addEventListener('change', remake)
  const chosen = new MutationObserver(remake)
  chosen.observe(document.documentElement, { attributeFilter: ['data-theme'] })
  atEnd(() => {
    resized.disconnect()
    chosen.disconnect()
    scheme.removeEventListener('change', remake)
    plot?.destroy()
  })
  return { root, show }
}

type PlotSize = Pick<uPlot.Options, 'width' | 'height'>

/** Moves the pointed time by an arrow, to the first or to the last one. Returns whether the key does that. */
function pointByKey(plot: uPlot, key: string): boolean {
  const [times] = plot.data
  const last = times.length - 1
  const { idx } = plot.cursor
  const steps: Readonly<Record<string, number>> = {
    ArrowLeft: (idx ?? last + 1) - 1,
    ArrowRight: (idx ?? last) + 1,
    Home: times.findIndex((time) => time >= (plot.scales['x']?.min ?? 0)),
    End: last,
  }
  const to = steps[key]
  if (to === undefined) return false
  const time = times[Math.min(Math.max(to, 0), last)]
  // A moment at the edge would be outside.
  const width = plot.over.clientWidth - 1
  const left = Math.min(Math.max(time === undefined ? 0 : plot.valToPos(time, 'x'), 0), width)
  plot.setCursor({ left, top: 1 })
  return true
}

interface LegendData extends LineChartData {
  /** The position under the pointer, if it is over the chart. */
  readonly at: number | null | undefined
}

/** The sentence says the same to a screen reader, without a change in each second. */
function chartLegend({ lines, values: kind }: LineChartOptions): PagePart<LegendData> {
  const format = chartFormats[kind]
  const values = lines.map(() => element('span', { class: 'value' }))
  const items = lines.map((line, nth) =>
    element('li', { hidden: true }, swatch(line), `${line.name} `, values[nth]),
  )
  const time = element('li')
  const root = element('ul', { class: 'legend', 'aria-hidden': 'true' }, ...items, time)
  const show = ({ at, times, notes, ...data }: LegendData): void => {
    const isPointed = typeof at === 'number' && at < times.length
    for (const [nth, value] of values.entries()) {
      const line = data.values[nth] ?? []
      items[nth]?.toggleAttribute('hidden', !hasValue(line))
      setElementText(value, isPointed ? format(line[at]) : (notes[nth] ?? ''))
    }
    setElementText(time, isPointed ? `at ${formatTime(times[at])}` : '')
  }
  return { root, show }
}

function swatch({ color, isDashed }: ChartLine): HTMLElement {
  const made = element('span', { class: isDashed === true ? 'swatch dashed' : 'swatch' })
  made.style.setProperty('--of', `var(--${color})`)
  return made
}

interface Plotted {
  readonly data: () => LineChartData
  readonly point: (at: number | null | undefined) => void
}

function plotOptions(
  options: LineChartOptions,
  { data, point }: Plotted,
): Omit<uPlot.Options, keyof PlotSize> {
  const { lines, spanS, spanMinS, values } = options
  const color = styleColors()
  const axis = {
    font,
    stroke: color('faint'),
    grid: { stroke: color('line'), width: 1 },
    ticks: { show: false },
  }
  const timesOf = (_plot: uPlot, at: number[]): string[] => at.map((s) => timeText(s, spanS))
  const series = lines.map((line): uPlot.Series => {
    const stroke = color(line.color)
    // A point is all that there is of a minute between two gaps.
    const points = { size: 4, fill: stroke, ...(spanS > 3_600 ? {} : { show: true }) }
    const dash = line.isDashed === true ? { dash: [4, 3] } : {}
    return { label: line.name, stroke, width: 1.75, points, ...dash }
  })
  return {
    legend: { show: false },
    cursor: { drag: { x: false, y: false }, y: false },
    padding: [null, (plot) => Math.max(nameSpacePx(plot, options, data()), rightPx), null, null],
    scales: {
      x: {
        range: (_plot, _min, max) => [
          Math.max(max - spanS, Math.min(beginOf(data()), max - spanMinS)),
          max,
        ],
      },
      y: valueScale(values),
    },
    axes: [
      { ...axis, size: 32, gap: timeGapPx, space: timeSpacePx, values: timesOf },
      { ...axis, size: labelSpacePx, ...valueAxis(values) },
    ],
    series: [{}, ...series],
    hooks: {
      setCursor: [(plot) => point(plot.cursor.idx)],
      draw: [(plot) => drawNames(plot, options, data())],
    },
  }
}

function valueScale(values: ChartValue): uPlot.Scale {
  return values === 'duration'
    ? { range: durationRange }
    : { range: (_plot, _min, max) => [0, Math.max(max, 1) * 1.1] }
}

/** Durations are drawn by their logarithms. */
function durationRange(_plot: uPlot, low: number, high: number): [number, number] {
  const heights = stepHeights(low, high)
  return [heights[0] ?? low, heights.at(-1) ?? high]
}

function stepHeights(low: number, high: number): number[] {
  return durationSteps(durationAt(low), durationAt(high)).map((ms) => Math.log10(ms))
}

/** To a microsecond, as powers are not exact. */
function durationAt(height: number): number {
  return Math.round(10 ** height * 1_000) / 1_000
}

function valueAxis(kind: ChartValue): Pick<uPlot.Axis, 'values' | 'splits' | 'incrs'> {
  if (kind === 'duration') return durationAxis
  const format = chartFormats[kind]
  const values = (_plot: uPlot, at: number[]): string[] => at.map((each) => format(each))
  return kind === 'count' ? { values, incrs: wholeSteps } : { values }
}

const durationAxis = {
  values: (_plot: uPlot, at: number[]) => at.map((height) => durationStepText(durationAt(height))),
  splits: (_plot: uPlot, _axis: number, low: number, high: number) => stepHeights(low, high),
}

/** Half an update is none. */
const wholeSteps = Array.from({ length: 12 }, (_, power) =>
  [1, 2, 5].map((n) => n * 10 ** power),
).flat()

/** The widest label of the axis fits beside it. */
function labelSpacePx(plot: uPlot, labels: readonly string[] | null): number {
  const widest = Math.max(0, ...(labels ?? []).map((label) => textWidthPx(plot, label)))
  return Math.ceil(widest) + labelGapPx
}

/** @returns the room that the names of lines take at the right; less if they are not written */
function nameSpacePx(plot: uPlot, { lines }: LineChartOptions, data: LineChartData): number {
  const shown = lines.filter((_, nth) => hasValue(data.values[nth] ?? []))
  const widest = Math.max(0, ...shown.map(({ name }) => textWidthPx(plot, name)))
  const spacePx = Math.ceil(widest) + 2 * nameGapPx
  return shown.length < 2 || spacePx > plot.width * nameShareMax ? 0 : spacePx
}

function textWidthPx({ ctx }: uPlot, text: string): number {
  ctx.save()
  ctx.font = font
  const { width } = ctx.measureText(text)
  ctx.restore()
  return width
}

/** Writes the name of each line beside its end. */
function drawNames(plot: uPlot, options: LineChartOptions, data: LineChartData): void {
  if (nameSpacePx(plot, options, data) === 0) return
  const { ctx, bbox } = plot
  const ratio = uPlot.pxRatio
  const ends = options.lines.flatMap((line, nth) => {
    const last = (data.values[nth] ?? []).findLast((value) => value !== null)
    if (last === undefined || last === null) return []
    return [{ line, y: plot.valToPos(heightOf(last, options.values), 'y') }]
  })
  const places = namePlaces(
    ends.map(({ y }) => y),
    { gap: textPx + 1, bottom: bbox.height / ratio },
  )
  const color = styleColors()
  const left = (bbox.left + bbox.width) / ratio + nameGapPx
  ctx.save()
  ctx.scale(ratio, ratio)
  ctx.font = font
  ctx.textAlign = 'left'
  ctx.textBaseline = 'middle'
  for (const [nth, { line }] of ends.entries()) {
    ctx.fillStyle = color(line.color)
    ctx.fillText(line.name, left, bbox.top / ratio + (places[nth] ?? 0))
  }
  ctx.restore()
}

function styleColors(): (name: string) => string {
  const style = getComputedStyle(document.documentElement)
  return (name) => style.getPropertyValue(`--${name}`).trim()
}

function beginOf({ times, values, beginS }: LineChartData): number {
  if (beginS !== undefined) return beginS
  const first = times.findIndex((_, nth) => values.some((line) => (line[nth] ?? null) !== null))
  return times[first] ?? Number.POSITIVE_INFINITY
}

function hasValue(line: ArrayLike<number | null | undefined>): boolean {
  return Array.from(line).some((value) => value !== null && value !== undefined)
}

/** Seconds matter only on a short axis. */
function timeText(unixSeconds: number, spanS: number): string {
  const text = formatTime(unixSeconds)
  return spanS > 600 ? text.slice(0, 5) : text
}

function alignedOf(
  { times, values }: LineChartData,
  { values: kind }: LineChartOptions,
): uPlot.AlignedData {
  const lines = values.map((line) =>
    line.map((value) => (value === null ? null : heightOf(value, kind))),
  )
  return [[...times], ...lines]
}

/** Returns how high a value is drawn. The scale of durations has no zero. */
function heightOf(value: number, kind: ChartValue): number {
  return kind === 'duration' ? Math.log10(Math.max(value, shortestShownMs)) : value
}
