/** Checks the files of a shard on request, whichever worker has it open. */
import type { FastifyInstance } from 'fastify'
import { PostboteError } from '../../errors.ts'
import { shardOperations } from '../../operations/server-operations.ts'
import type { FileDamage } from '../../store/shard-damaged.ts'
import { addOperation } from './add-operations.ts'

export interface ShardRoutesOptions {
  /** The number of shards. */
  readonly shards: number
  /** Resolves with undefined if the worker ends before the check does. */
  checkShard(shard: number): Promise<ShardCheckResult | undefined>
}

export interface ShardCheckResult {
  readonly files: number
  readonly damagesFound: number
  /** The first of the damages. */
  readonly damages: readonly FileDamage[]
}

/** Adds the route. The records of a shard have their own (record-routes.ts). */
export function addShardRoutes(app: FastifyInstance, options: ShardRoutesOptions): void {
  addOperation(app, shardOperations.checkShard, async ({ params }) => {
    const shard = shardParam(params.shard, options.shards)
    const checked = await options.checkShard(shard)
    if (checked === undefined) throw new PostboteError('STORE_UNAVAILABLE')
    const { files, damagesFound, damages } = checked
    return { shard, files, damages_found: damagesFound, damages }
  })
}

/**
 * Returns the number of a shard in a path.
 *
 * @param shards - the number of shards
 * @throws PostboteError BAD_REQUEST
 */
export function shardParam(text: string, shards: number): number {
  if (/^\d{1,3}$/.test(text) && Number(text) < shards) return Number(text)
  throw new PostboteError('BAD_REQUEST', {
    detail: `expected the number of a shard, 0 to ${shards - 1}, got ${JSON.stringify(text.slice(0, 20))}`,
  })
}
