/** The mode of a worker's place, which place-mode.ts draws. All processes can read what it means for the worker. */
import type { Clock } from '../../kit/clock.ts'
import type { ShardTable } from '../shard-table.ts'
import type { WorkerState } from '../worker-record.ts'
import { changedPlaceMode, type PlaceMode } from './place-mode.ts'

export interface PlaceStateOptions {
  readonly worker: number
  readonly clock: Clock
  readonly shardTable: Pick<ShardTable, 'noteWorker'>
}

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
  readonly #options: PlaceStateOptions
  #mode: PlaceMode = 'empty'
  #starts = 0

  constructor(options: PlaceStateOptions) {
    this.#options = options
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
    const { worker, clock, shardTable } = this.#options
    const state = stateOf[mode]
    shardTable.noteWorker(worker, {
      state,
      pid: state === 'down' ? 0 : (process?.pid ?? 0),
      generation: process?.generation ?? 0,
      restarts: Math.max(this.#starts - 1, 0),
      servingSinceS: state === 'serving' ? Math.floor(clock.machineMs() / 1_000) : 0,
    })
  }
}
