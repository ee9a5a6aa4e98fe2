/**
 * Chooses the worker for a connection whose request line names no bot: a stream of pushes, `/metrics`, an unusual
 * spelling.
 *
 * Workers are chosen in turn, but only among the serving ones with the fewest waiting connections. Otherwise, with two
 * workers, one that hangs would have every second connection refused after 4 s while the other one is idle.
 */
export interface WaitingLine {
  readonly isAttached: boolean
  readonly waiting: number
}

export class WorkersInTurn {
  readonly #lines: readonly WaitingLine[]
  #next = 0

  constructor(lines: readonly WaitingLine[]) {
    this.#lines = lines
  }

  next(): number {
    const count = this.#lines.length
    let chosen = this.#next
    let fewest = Infinity
    for (let step = 0; step < count; step++) {
      const worker = (this.#next + step) % count
      const line = this.#lines[worker]
      if (line?.isAttached !== true || line.waiting >= fewest) continue
      chosen = worker
      fewest = line.waiting
    }
    this.#next = (chosen + 1) % count
    return chosen
  }
}
