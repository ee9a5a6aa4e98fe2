/**
 * Chooses the worker for a connection whose request line names no bot: a stream of pushes, `/metrics`, an odd spelling.
 *
 * In turn, but of those that serve only the ones for which the fewest connections wait: a worker that hangs would
 * have every second one refused after 4 s, while another has nothing to do.
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
