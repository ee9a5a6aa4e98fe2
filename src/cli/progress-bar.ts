/**
 * Shows on standard error how far something is: a bar that is redrawn in place on a terminal, elsewhere a line for each
 * quarter. Lines of the result go to standard output through `line`, which takes the bar away first.
 */

const barWidth = 30

export class ProgressBar {
  readonly #isTerminal = process.stderr.isTTY
  #shown = ''

  /** `what` names the step, as `shard 3: reading`. */
  show(what: string, done: number, of: number): void {
    const share = of === 0 ? 1 : Math.min(done / of, 1)
    if (!this.#isTerminal) {
      const text = `${what}: ${Math.floor(share * 4) * 25}%`
      if (text !== this.#shown) process.stderr.write(`${text}\n`)
      this.#shown = text
      return
    }
    const filled = Math.round(share * barWidth)
    const bar = '#'.repeat(filled).padEnd(barWidth, '.')
    const text = `[${bar}] ${String(Math.floor(share * 100)).padStart(3)}% ${what}`
    if (text === this.#shown) return
    process.stderr.write(`\r${text}\u001B[K`)
    this.#shown = text
  }

  /** Writes a line to standard output. */
  line(text: string): void {
    this.clear()
    process.stdout.write(`${text}\n`)
  }

  /** Takes the bar away; the next `show` draws it again. */
  clear(): void {
    if (this.#isTerminal && this.#shown !== '') process.stderr.write('\r\u001B[K')
    if (this.#isTerminal) this.#shown = ''
  }
}
