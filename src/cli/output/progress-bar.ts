/**
 * Shows progress on standard error: on a terminal a bar that is redrawn in place, otherwise a line for each quarter.
 * `line` writes lines of the result to standard output and erases the bar first.
 */

const barWidth = 30

export class ProgressBar {
  readonly #isTerminal = process.stderr.isTTY
  readonly #kept: string[] | undefined
  #shown = ''

  /** @param keepsLines - whether `line` keeps the lines for `kept` and writes nothing */
  constructor(keepsLines = false) {
    this.#kept = keepsLines ? [] : undefined
  }

  /** The lines of the result so far, if they are kept. */
  get kept(): readonly string[] {
    return this.#kept ?? []
  }

  /**
   * Shows the progress.
   *
   * @param what - names the step, such as `shard 3: reading`
   * @param detail - changes all the time, such as a number of bytes, and is shown on a terminal only
   */
  show(what: string, done: number, of: number, detail = ''): void {
    const share = of === 0 ? 1 : Math.min(done / of, 1)
    if (!this.#isTerminal) {
      const text = `${what}: ${Math.floor(share * 4) * 25}%`
      if (text !== this.#shown) process.stderr.write(`${text}\n`)
      this.#shown = text
      return
    }
    const filled = Math.round(share * barWidth)
    const bar = '#'.repeat(filled).padEnd(barWidth, '.')
    const text = `[${bar}] ${String(Math.floor(share * 100)).padStart(3)}% ${what}${detail}`
    if (text === this.#shown) return
    process.stderr.write(`\r${text}\u001B[K`)
    this.#shown = text
  }

  /** Writes a line to standard output, or keeps it. */
  line(text: string): void {
    this.clear()
    if (this.#kept === undefined) process.stdout.write(`${text}\n`)
    else this.#kept.push(text)
  }

  /** Erases the bar; the next `show` draws it again. */
  clear(): void {
    if (this.#isTerminal && this.#shown !== '') process.stderr.write('\r\u001B[K')
    if (this.#isTerminal) this.#shown = ''
  }
}
