/**
 * The call that tells producers which worker has which shard, from the routes that every worker has, so that no other process is
 * asked; and the calls about a shard: a check of its files, whichever worker has it open, and all of its records for an export
 * (`postbote export`), from one snapshot, while the shard is served. The worker that has the shard sends the records, whichever
 * worker got the request (links/forward/request-router.ts).
 *
 * The snapshot has everything that was acknowledged before the request. In a database, this needs the lease: as long as it
 * is valid, no other node can have acknowledged anything for the shard.
 */
import { crc32 } from 'node:zlib'
import type { FastifyInstance } from 'fastify'
import { PostboteError } from '../../kit/errors.ts'
import type { ResultOf } from '../../api/operation.ts'
import { shardOperations } from './shard-operations.ts'
import type { Shard } from '../../shard/shard.ts'
import { ShardSection } from './shard-section.ts'
import { addOperations } from '../../private-api/add-operations.ts'
import { LongResponse } from '../../private-api/long-response.ts'
import { RecordStream } from './record-stream.ts'
import type { PrivateApiParts, ShardPlaces } from '../../private-api/private-api-parts.ts'
import type { WorkerKeys } from '../../access/worker-keys.ts'

type Options = Pick<
  PrivateApiParts,
  'clock' | 'shards' | 'checkShard' | 'shardAt' | 'recordStreams'
> & {
  readonly keys: Pick<WorkerKeys, 'ring'>
  readonly routes: Pick<ShardPlaces, 'groups'>
}

/** So many exports read the shards of a worker at a time. Chosen: one export asks for one shard after the other. */
export const recordStreamsMax = 4

export function addShardRoutes(app: FastifyInstance, options: Options): void {
  const { keys, shards, recordStreams } = options
  let opening = 0
  addOperations(app, shardOperations, {
    listShards: async () => shardList(shards, options.routes.groups()),
    async checkShard({ params }) {
      const shard = shardParam(params.shard, shards)
      const checked = await options.checkShard(shard)
      if (checked === undefined) throw new PostboteError('STORE_UNAVAILABLE')
      const { files, damagesFound, damages } = checked
      return { shard, files, damages_found: damagesFound, damages }
    },
    async exportShard(call) {
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
      const stream = new RecordStream(shard.index, response, section, options)
      recordStreams.add(stream)
      void stream.send().finally(() => recordStreams.delete(stream))
    },
  })
}

/** The version is a checksum, so that all workers of a node return the same number without an agreement. */
function shardList(
  shards: number,
  groups: ReturnType<ShardPlaces['groups']>,
): ResultOf<typeof shardOperations.listShards> {
  return { shards, groups, version: crc32(JSON.stringify({ shards, groups })) }
}

/**
 * Returns the number of a shard in a path.
 *
 * @param shards - the number of shards
 * @throws PostboteError BAD_REQUEST
 */
function shardParam(text: string, shards: number): number {
  if (/^\d{1,3}$/.test(text) && Number(text) < shards) return Number(text)
  throw new PostboteError('BAD_REQUEST', {
    detail: `expected the number of a shard, 0 to ${shards - 1}, got ${JSON.stringify(text.slice(0, 20))}`,
  })
}

async function leasedSection(shard: Shard, shards: number): Promise<ShardSection> {
  const section = await ShardSection.begin(shard, shards)
  if (shard.lease.isValid()) return section
  await section.close()
  throw new PostboteError('STORE_UNAVAILABLE')
}
