/**
 * A chart of lines over time, drawn by uPlot. A screen reader gets the sentence that the caller passes with the values.
 * The colors come from the style, so a chart is made anew when the reader changes between light and dark.
 */
import uPlot from 'uplot'
import { element } from './element.ts'

export interface LineChartOptions {
  readonly title: string
  /** One name for each line. */
  readonly lines: readonly string[]
}

/** The times in Unix seconds, and the values of each line; null is a gap. */
export interface LineChartData {
  readonly times: readonly number[]
  readonly values: readonly (readonly (number | null)[])[]
  /** Says in a sentence what the chart shows now. */
  readonly sentence: string
}

const heightPx = 180
const dark = '(prefers-color-scheme: dark)'

export class LineChart {
  readonly root: HTMLElement
  readonly #options: LineChartOptions
  readonly #frame = element('div', { class: 'plot', role: 'img' })
  readonly #resized = new ResizeObserver(() => this.#resize())
  readonly #scheme = matchMedia(dark)
  readonly #redraw = (): void => this.#remake()
  #data: LineChartData = { times: [], values: [], sentence: 'No data yet.' }
  #plot: uPlot | undefined

  constructor(options: LineChartOptions) {
    this.#options = options
    this.root = element('section', { class: 'card' }, element('h2', {}, options.title), this.#frame)
    this.#resized.observe(this.#frame)
    this.#scheme.addEventListener('change', this.#redraw)
  }

  show(data: LineChartData): void {
    this.#data = data
    this.#frame.setAttribute('aria-label', `${this.#options.title}: ${data.sentence}`)
    if (this.#plot === undefined) this.#remake()
    else this.#plot.setData(alignedOf(data))
  }

  close(): void {
    this.#resized.disconnect()
    this.#scheme.removeEventListener('change', this.#redraw)
    this.#plot?.destroy()
  }

  #remake(): void {
    this.#plot?.destroy()
    const style = getComputedStyle(document.documentElement)
    const color = (name: string): string => style.getPropertyValue(`--${name}`).trim()
    const axis = { stroke: color('faint'), grid: { stroke: color('line') }, ticks: { show: false } }
    const options: uPlot.Options = {
      width: this.#width,
      height: heightPx,
      cursor: { drag: { x: false, y: false } },
      scales: { y: { range: (_plot, _min, max) => [0, Math.max(max, 1) * 1.1] } },
      axes: [axis, { ...axis, size: 56 }],
      series: [
        {},
        ...this.#options.lines.map((label, nth) => ({
          label,
          stroke: color(`plot-${(nth % 4) + 1}`),
          width: 2,
          dash: nth < 4 ? [] : [4, 4],
        })),
      ],
    }
    this.#plot = new uPlot(options, alignedOf(this.#data), this.#frame)
  }

  get #width(): number {
    return Math.max(this.#frame.clientWidth, 200)
  }

  #resize(): void {
    this.#plot?.setSize({ width: this.#width, height: heightPx })
  }
}

function alignedOf({ times, values }: LineChartData): uPlot.AlignedData {
  return [[...times], ...values.map((line) => [...line])]
}
