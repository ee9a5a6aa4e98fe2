/**
 * The life of a worker's place:
 *
 *   empty --start--> starting --serve--> serving --dies--> empty --later--> waiting --> starting
 *     ^                 |                   ^                |
 *     +------fails------+                   +--a successor was prepared, and takes over
 *
 *   any --> stopped: nothing is started again, and the process that serves may still be drained
 *
 * All processes can read what the mode of a place means for its worker.
 */
import { changesOf } from '../../kit/changes-of.ts'
import type { Clock } from '../../kit/clock.ts'
import type { ShardTable, WorkerState } from '../shard-table.ts'

export type PlaceMode = 'empty' | 'starting' | 'serving' | 'waiting' | 'stopped'

/** Returns the new mode. Any other change than those drawn above is a bug. */
const changedPlaceMode = changesOf<PlaceMode>({
  empty: ['starting', 'serving', 'waiting', 'stopped'],
  starting: ['serving', 'empty', 'stopped'],
  serving: ['serving', 'empty', 'stopped'],
  waiting: ['starting', 'waiting', 'stopped'],
  stopped: ['stopped'],
})

/** The process that the place has, or had last. */
export interface PlaceProcess {
  readonly pid: number
  readonly generation: number
}

const stateOf: Readonly<Record<PlaceMode, WorkerState>> = {
  empty: 'down',
  starting: 'starting',
  serving: 'serving',
  waiting: 'down',
  stopped: 'ending',
}

export class PlaceState {
  readonly #worker: number
  readonly #clock: Pick<Clock, 'machineMs'>
  readonly #shardTable: Pick<ShardTable, 'noteWorker'>
  #mode: PlaceMode = 'empty'
  #starts = 0

  constructor(
    worker: number,
    clock: Pick<Clock, 'machineMs'>,
    shardTable: Pick<ShardTable, 'noteWorker'>,
  ) {
    this.#worker = worker
    this.#clock = clock
    this.#shardTable = shardTable
  }

  get mode(): PlaceMode {
    return this.#mode
  }

  get isStopped(): boolean {
    return this.#mode === 'stopped'
  }

  /** @param process - of the place; undefined before the first one was started */
  to(mode: PlaceMode, process: PlaceProcess | undefined): void {
    this.#mode = changedPlaceMode(this.#mode, mode)
    if (mode === 'starting') this.#starts++
    const state = stateOf[mode]
    this.#shardTable.noteWorker(this.#worker, {
      state,
      pid: state === 'down' ? 0 : (process?.pid ?? 0),
      generation: process?.generation ?? 0,
      restarts: Math.max(this.#starts - 1, 0),
      servingSinceS: state === 'serving' ? Math.floor(this.#clock.machineMs() / 1_000) : 0,
    })
  }
}
