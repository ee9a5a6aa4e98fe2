/** Describes the route of shard-routes.ts for docs/reference/openapi.json. */
import { type TSchema, Type } from 'typebox'
import { fieldSchemas } from './field-schemas.ts'
import { json, type Operations } from './operation.ts'

const { count, shard } = fieldSchemas

/** Returns the operations of these routes. */
export function shardOperations(): Operations {
  const check = Type.Object(
    {
      shard: shard(),
      files: count('The number of files that were read.'),
      damages_found: count('The number of damaged places.'),
      damages: Type.Array(fileDamage()),
    },
    { $id: 'ShardCheck', description: 'What the check has found; `damages` has the first places.' },
  )
  return {
    'POST /v1/shards/:shard/check': {
      id: 'checkShard',
      tag: 'server',
      summary: 'Checks the files of a shard',
      description:
        'Responds when all files of the shard have been read. The shard is served meanwhile.',
      results: { 200: json(check) },
    },
    'GET /v1/shards/:shard/records': {
      id: 'exportShard',
      tag: 'server',
      summary: 'Sends all records of a shard',
      description:
        'For `postbote export`: the section of the shard in a backup, whose format docs/inside/storage.md describes. It is one moment of the shard, with everything that was acknowledged before the call. A response without its end frame is incomplete. The records contain secrets.',
      results: {
        200: {
          'application/octet-stream': {
            schema: Type.String({ description: 'Bytes: frames with the records.' }),
          },
        },
      },
    },
  }
}

/** Returns the schema of a damaged place in a file. */
export function fileDamage(more: Record<string, TSchema> = {}): TSchema {
  return Type.Object({
    ...more,
    file: Type.String({ description: 'The path of the file, or of the directory of the shard.' }),
    offset: Type.Optional(count('Where the damage is in the file, in bytes.')),
    reason: Type.String({ description: 'What was found.' }),
  })
}
