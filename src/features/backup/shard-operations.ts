/** The calls about shards: where they are, a check, and all of their records. */
import { shardsMax } from '../../kit/limits.ts'
import * as is from '../../api/words.ts'
import { content, declareOperations } from '../../api/operation.ts'

const shardsPath = '/v1/shards'
const shardPath = `${shardsPath}/:shard` as const

export const shardOperations = declareOperations('server', {
  listShards: {
    route: `GET ${shardsPath}`,
    scope: 'push',
    about: 'nobody',
    more: 'protocol.md#99-shards',
    summary: 'Returns which worker has which shard, for `POST /v1/updates?shard=`',
    description:
      'The shard of a bot is the first 12 bits of the SHA-256 of its decimal id, modulo the number of shards.',
    result: () =>
      is.named('ShardList', 'Where the shards are.', {
        shards: is.integer('The number of shards, a power of two.', {
          minimum: 1,
          maximum: shardsMax,
        }),
        groups: is.list(
          is.list(is.shard()),
          'The shards that the answering node has: a list for each of its workers that has any.',
        ),
        version: is.count('Another number whenever the other fields change.'),
      }),
  },
  checkShard: {
    route: `POST ${shardPath}/check`,
    scope: 'all',
    about: 'fleet',
    summary: 'Checks the files of a shard',
    description:
      'Responds when all files of the shard have been read. The shard is served meanwhile.',
    result: () =>
      is.named('ShardCheck', 'What the check has found; `damages` has the first places.', {
        shard: is.shard(),
        files: is.count('The number of files that were read.'),
        damages_found: is.count('The number of damaged places.'),
        damages: is.list(is.fileDamage({})),
      }),
  },
  exportShard: {
    route: `GET ${shardPath}/records`,
    scope: 'all',
    about: 'shard',
    lasts: true,
    command: 'export',
    more: '../inside/storage.md#backups',
    summary: 'Sends all records of a shard',
    description:
      'For `postbote export`: the section of the shard in a backup, whose format docs/inside/storage.md describes. It is one moment of the shard, with everything that was acknowledged before the call. A response without its end frame is incomplete. The records contain secrets.',
    results: () => ({
      200: content('application/octet-stream', 'Bytes: frames with the records.'),
    }),
  },
})
