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
import { WorkersInTurn } from './workers-in-turn.ts'

export interface ConnectionRouterOptions {
  readonly map: ShardMap
  readonly assignment: Pick<ShardAssignment, 'has'>
  /** Of each worker. */
  readonly handOffs: readonly Pick<HandOff, 'submit' | 'isAttached' | 'waiting'>[]
}

export class ConnectionRouter {
  readonly #options: ConnectionRouterOptions
  readonly #inTurn: WorkersInTurn

  constructor(options: ConnectionRouterOptions) {
    this.#options = options
    this.#inTurn = new WorkersInTurn(options.handOffs)
  }

  route(owner: NamedOwner | undefined, connection: WaitingConnection): void {
    const { map } = this.#options
    if (owner === undefined) this.#submit(this.#inTurn.next(), connection)
    else if ('botId' in owner) this.#submit(this.#workerOf(map.shardOf(owner.botId)), connection)
    else this.#submit(this.#workerOf(owner.shard), this.#orElsewhere(connection))
  }

  #workerOf(shard: number): number {
    const { map, assignment } = this.#options
    return shard < map.shards && assignment.has(shard) ? map.workerOf(shard) : this.#inTurn.next()
  }

  #submit(worker: number, connection: WaitingConnection): void {
    const handOff = this.#options.handOffs[worker]
    if (handOff === undefined) connection.refuse(new PostboteError('UNAVAILABLE'))
    else handOff.submit(connection)
  }

  /** At the end of the server no worker is attached. */
  #orElsewhere(connection: WaitingConnection): WaitingConnection {
    const refuse = (error: PostboteError): void => {
      const isEnding = this.#options.handOffs.every(({ isAttached }) => !isAttached)
      if (isEnding) connection.refuse(error)
      else this.#submit(this.#inTurn.next(), connection)
    }
    return { ...connection, refuse }
  }
}
