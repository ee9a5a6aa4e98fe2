/**
 * The processes of the workers, as the primary records them for GET /v1/nodes. Six words for each place:
 *
 *     state, pid, generation, restarts, servingSinceS      stored by the primary only
 *     turnedAtS                                            stored by the process, once a second
 *
 * A reader may see some words of one record and some of the next. They are shown to people, and the next reading is right.
 */
import { workersMax } from '../../kit/limits.ts'
import { type WorkerRecord, workerStates } from '../shard-table.ts'

const recordWords = 6
const pidWord = 1
const turnedWord = 5

export const workerTableWords = workersMax * recordWords

export class SharedWorkerTable {
  readonly #words: Int32Array

  /** @param words - the `workerTableWords` words of the table */
  constructor(words: Int32Array) {
    this.#words = words
  }

  /** For the primary only. */
  note(worker: number, { state, pid, generation, restarts, servingSinceS }: WorkerRecord): void {
    const values = [workerStates.indexOf(state), pid, generation, restarts, servingSinceS]
    for (const [nth, value] of values.entries()) {
      Atomics.store(this.#words, worker * recordWords + nth, value)
    }
  }

  /**
   * For the process of a worker, while its event loop turns. A process that was replaced is not the one that is recorded.
   *
   * @param nowS - on the machine's clock, in whole seconds
   */
  turned(worker: number, pid: number, nowS: number): void {
    if (this.#word(worker, pidWord) !== pid) return
    Atomics.store(this.#words, worker * recordWords + turnedWord, nowS)
  }

  /** Returns when the event loop of the process turned last, as far as is known; 0 while it does not serve. */
  turnedAtS(worker: number): number {
    const { servingSinceS } = this.of(worker)
    // An earlier process may have left its own time.
    return servingSinceS === 0 ? 0 : Math.max(servingSinceS, this.#word(worker, turnedWord))
  }

  /** Returns a record of a worker that is down, if the primary has recorded nothing yet. */
  of(worker: number): WorkerRecord {
    return {
      state: workerStates[this.#word(worker, 0)] ?? 'down',
      pid: this.#word(worker, pidWord),
      generation: this.#word(worker, 2),
      restarts: this.#word(worker, 3),
      servingSinceS: this.#word(worker, 4),
    }
  }

  #word(worker: number, nth: number): number {
    return Atomics.load(this.#words, worker * recordWords + nth)
  }
}
