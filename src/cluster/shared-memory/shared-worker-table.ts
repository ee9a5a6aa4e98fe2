/**
 * The processes of the workers, as the primary records them for GET /v1/nodes. Five words for each place:
 *
 *     state, pid, generation, restarts, servingSinceS      stored by the primary only
 *
 * A reader may see some words of one record and some of the next. They are shown to people, and the next reading is right.
 */
import { workersMax } from '../../limits.ts'
import { type WorkerRecord, workerStates } from '../worker-record.ts'

const recordWords = 5

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

  /** Returns a record of a worker that is down, if the primary has recorded nothing yet. */
  of(worker: number): WorkerRecord {
    const word = (nth: number): number => Atomics.load(this.#words, worker * recordWords + nth)
    return {
      state: workerStates[word(0)] ?? 'down',
      pid: word(1),
      generation: word(2),
      restarts: word(3),
      servingSinceS: word(4),
    }
  }
}
