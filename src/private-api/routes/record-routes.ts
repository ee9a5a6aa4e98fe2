/**
 * Sends all records of a shard to an export (`postbote export`), from one snapshot, while the shard is served. The worker
 * that has the shard sends them, whichever worker got the request (cluster/forward/request-router.ts).
 *
 * The snapshot has everything that was acknowledged before the request. In a database, this needs the lease: as long as it
 * is valid, no other node can have acknowledged anything for the shard.
 */
import type { FastifyInstance } from 'fastify'
import type { KeyRing } from '../../access/key-ring.ts'
import type { Clock } from '../../clock.ts'
import { PostboteError } from '../../errors.ts'
import { shardOperations } from '../../operations/server-operations.ts'
import type { Shard } from '../../shard/shard.ts'
import { ShardSection } from '../../shard/shard-section.ts'
import { addOperation } from './add-operations.ts'
import { LongResponse } from '../follow/long-response.ts'
import { RecordStream } from '../follow/record-stream.ts'
import { shardParam } from './shard-routes.ts'

export interface RecordRoutesOptions {
  readonly clock: Clock
  /** The number of shards. */
  readonly shards: number
  /**
   * Returns a shard of this worker.
   *
   * @throws PostboteError SHARD_BROKEN or STORE_UNAVAILABLE
   */
  shardAt(shard: number): Shard
  /** The streams that are open, which end when the worker gives its shards up. */
  readonly recordStreams: Set<RecordStream>
  readonly keys: { readonly ring: Pick<KeyRing, 'watch'> }
}

/** So many exports read the shards of a worker at a time. Chosen: one export asks for one shard after the other. */
export const recordStreamsMax = 4

export function addRecordRoutes(app: FastifyInstance, options: RecordRoutesOptions): void {
  let opening = 0
  addOperation(app, shardOperations.exportShard, async (call) => {
    const { clock, keys, shards, recordStreams } = options
    const shard = options.shardAt(shardParam(call.params.shard, shards))
    if (opening + recordStreams.size >= recordStreamsMax) {
      throw new PostboteError('TOO_MANY_REQUESTS', { retryAfterS: 1 })
    }
    opening += 1
    const section = await leasedSection(shard, shards).finally(() => (opening -= 1))
    const response = LongResponse.begin(call, keys.ring, {
      'Content-Type': 'application/octet-stream',
      'Cache-Control': 'no-store',
    })
    const stream = new RecordStream({ response, section, clock })
    recordStreams.add(stream)
    void stream.send().finally(() => recordStreams.delete(stream))
  })
}

async function leasedSection(shard: Shard, shards: number): Promise<ShardSection> {
  const section = await ShardSection.begin(shard, shards)
  if (shard.lease.isValid()) return section
  await section.close()
  throw new PostboteError('STORE_UNAVAILABLE')
}
