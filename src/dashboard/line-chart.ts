/**
 * A chart of lines over time, drawn by uPlot, with a legend of its own: the legend shows what the caller says about each
 * line, and under the pointer the values at that time. A screen reader gets the sentence that the caller passes.
 * The colors come from the style, so a chart is made anew when the reader changes between light and dark.
 */
import uPlot from 'uplot'
import { element, setElementText } from './element.ts'
import { formatTime } from './format.ts'

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
  /** Stands in place of the lines while there are none. */
  readonly emptyText: string
  formatValue(value: number | null | undefined): string
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

const heightPx = 200
/** Room for a time below the axis. */
const timeSpacePx = 64
const dark = '(prefers-color-scheme: dark)'

export class LineChart {
  readonly root: HTMLElement
  readonly #options: LineChartOptions
  readonly #frame = element('div', { class: 'plot', role: 'img', hidden: true })
  readonly #empty: HTMLElement
  /** The values of the legend, and the time in front of them. */
  readonly #values: readonly HTMLElement[]
  readonly #time = element('li')
  readonly #legend: HTMLElement
  readonly #resized = new ResizeObserver(() => this.#resize())
  readonly #scheme = matchMedia(dark)
  readonly #redraw = (): void => this.#remake()
  #data: LineChartData = { times: [], values: [], notes: [], sentence: '' }
  #plot: uPlot | undefined

  constructor(options: LineChartOptions) {
    this.#options = options
    this.#empty = element('p', { class: 'faint' }, options.emptyText)
    this.#values = options.lines.map(() => element('span', { class: 'value' }))
    // The sentence says the same to a screen reader, without a change in each second.
    this.#legend = element(
      'ul',
      { class: 'legend', 'aria-hidden': 'true' },
      ...options.lines.map(({ name, color }, nth) =>
        element(
          'li',
          {},
          element('span', { class: `swatch plot-${color}` }),
          `${name} `,
          this.#values[nth] ?? '',
        ),
      ),
      this.#time,
    )
    this.root = element(
      'section',
      { class: 'card' },
      element('h2', {}, options.title),
      this.#empty,
      this.#frame,
      this.#legend,
    )
    this.#resized.observe(this.root)
    this.#scheme.addEventListener('change', this.#redraw)
  }

  show(data: LineChartData): void {
    this.#data = data
    this.#frame.setAttribute('aria-label', `${this.#options.title}: ${data.sentence}`)
    const isEmpty = !data.values.some(hasValue)
    this.#empty.hidden = !isEmpty
    this.#frame.hidden = isEmpty
    this.#showLegend(this.#plot?.cursor.idx)
    if (isEmpty) return
    if (this.#plot === undefined) this.#remake()
    else this.#plot.setData(alignedOf(data))
  }

  close(): void {
    this.#resized.disconnect()
    this.#scheme.removeEventListener('change', this.#redraw)
    this.#plot?.destroy()
  }

  /** @param at - the position under the pointer, if it is over the chart */
  #showLegend(at: number | null | undefined): void {
    const { times, values, notes } = this.#data
    const isPointed = typeof at === 'number' && at < times.length
    for (const [nth, value] of this.#values.entries()) {
      const line = values[nth] ?? []
      value.parentElement?.toggleAttribute('hidden', !hasValue(line))
      const text = isPointed ? this.#options.formatValue(line[at]) : (notes[nth] ?? '')
      setElementText(value, text)
    }
    setElementText(this.#time, isPointed ? `at ${formatTime(times[at])}` : '')
  }

  #remake(): void {
    this.#plot?.destroy()
    this.#plot = undefined
    if (this.#frame.hidden) return
    const { spanS, lines } = this.#options
    const style = getComputedStyle(document.documentElement)
    const color = (name: string): string => style.getPropertyValue(`--${name}`).trim()
    const axis = {
      stroke: color('faint'),
      grid: { stroke: color('line'), width: 1 },
      ticks: { show: false },
    }
    const options: uPlot.Options = {
      width: this.#width,
      height: heightPx,
      legend: { show: false },
      cursor: { drag: { x: false, y: false }, y: false },
      scales: {
        x: { range: (_plot, _min, max) => [max - spanS, max] },
        y: { range: (_plot, _min, max) => [0, Math.max(max, 1) * 1.1] },
      },
      axes: [
        {
          ...axis,
          size: 28,
          space: timeSpacePx,
          values: (_plot, at) => at.map((s) => timeText(s, spanS)),
        },
        { ...axis, size: 52 },
      ],
      series: [
        {},
        ...lines.map((line) => {
          const stroke = color(`plot-${line.color}`)
          // A point is all that there is of a minute between two gaps.
          return {
            label: line.name,
            stroke,
            width: 1.5,
            points: { show: true, size: 3, fill: stroke },
          }
        }),
      ],
      hooks: { setCursor: [(plot) => this.#showLegend(plot.cursor.idx)] },
    }
    this.#plot = new uPlot(options, alignedOf(this.#data), this.#frame)
  }

  get #width(): number {
    return Math.max(this.#frame.clientWidth, 200)
  }

  #resize(): void {
    if (!this.#frame.hidden) this.#plot?.setSize({ width: this.#width, height: heightPx })
  }
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
