/**
 * Chooses the worker that gets a connection.
 *
 *   names a bot      the worker that has its shard
 *   names a shard    the worker that has it; if that one does not take the connection, another one
 *   neither          the workers in turn, as for what another node has: any worker finds the way to it
 *
 * A connection that names a bot can be served by one worker only, so it waits for that one and is refused in the end. The
 * shard of a stream is a hint, which may save time and may never cost a request.
 */
import { PostboteError } from '../../kit/errors.ts'
import type { ShardAssignment } from '../shard-assignment.ts'
import type { ShardMap } from '../shard-map.ts'
import type { HandOff, WaitingConnection } from './hand-off.ts'
import type { NamedOwner } from './request-line.ts'

type HandOffs = readonly Pick<HandOff, 'submit' | 'isAttached' | 'waiting'>[]

export class ConnectionRouter {
  readonly #map: ShardMap
  readonly #assignment: Pick<ShardAssignment, 'has'>
  readonly #handOffs: HandOffs
  readonly #inTurn: WorkersInTurn

  /** @param handOffs - of each worker */
  constructor(map: ShardMap, assignment: Pick<ShardAssignment, 'has'>, handOffs: HandOffs) {
    this.#map = map
    this.#assignment = assignment
    this.#handOffs = handOffs
    this.#inTurn = new WorkersInTurn(handOffs)
  }

  route(owner: NamedOwner | undefined, connection: WaitingConnection): void {
    const map = this.#map
    if (owner === undefined) this.#submit(this.#inTurn.next(), connection)
    else if ('botId' in owner) this.#submit(this.#workerOf(map.shardOf(owner.botId)), connection)
    else this.#submit(this.#workerOf(owner.shard), this.#orElsewhere(connection))
  }

  #workerOf(shard: number): number {
    const map = this.#map
    return shard < map.shards && this.#assignment.has(shard)
      ? map.workerOf(shard)
      : this.#inTurn.next()
  }

  #submit(worker: number, connection: WaitingConnection): void {
    const handOff = this.#handOffs[worker]
    if (handOff === undefined) connection.refuse(new PostboteError('UNAVAILABLE'))
    else handOff.submit(connection)
  }

  /** At the end of the server no worker is attached. */
  #orElsewhere(connection: WaitingConnection): WaitingConnection {
    const refuse = (error: PostboteError): void => {
      const isEnding = this.#handOffs.every(({ isAttached }) => !isAttached)
      if (isEnding) connection.refuse(error)
      else this.#submit(this.#inTurn.next(), connection)
    }
    return { ...connection, refuse }
  }
}

export interface WaitingLine {
  readonly isAttached: boolean
  readonly waiting: number
}

/**
 * Chooses the worker for a connection whose request line names no bot: a stream of pushes, `/metrics`, an unusual
 * spelling.
 *
 * Workers are chosen in turn, but only among the serving ones with the fewest waiting connections. Otherwise, with two
 * workers, one that hangs would have every second connection refused after 4 s while the other one is idle.
 */
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
