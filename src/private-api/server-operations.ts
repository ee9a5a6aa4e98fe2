/** Describes the routes of private-api.ts and openapi-route.ts for docs/reference/openapi.json. */
import { type TSchema, Type } from 'typebox'
import { fieldSchemas } from './field-schemas.ts'
import { json, type Operation, type Operations } from './operation.ts'
import { fileDamage } from './shard-operations.ts'

const { count, shard } = fieldSchemas

/** Returns the operations of these routes. */
export function serverOperations(): Operations {
  const isUp = Type.Object(
    { status: Type.Literal('ok') },
    { $id: 'Liveness', description: 'The server runs.' },
  )
  return {
    ...probe('/healthz', {
      id: 'checkHealth',
      tag: 'server',
      summary: 'Reports whether the server runs',
      results: { 200: json(isUp) },
      isOpen: true,
    }),
    ...probe('/readyz', {
      id: 'checkReadiness',
      tag: 'server',
      summary: 'Reports whether the server serves, and what needs attention',
      results: { 200: json(readiness()), 503: json(readiness()) },
      // A worker whose shards this one asks about may be gone.
      errors: ['STORE_UNAVAILABLE', 'OUTCOME_UNKNOWN'],
      isOpen: true,
    }),
    'GET /metrics': {
      id: 'getMetrics',
      tag: 'server',
      summary: 'Returns the counters of all workers',
      results: {
        200: {
          'text/plain': { schema: Type.String({ description: 'The text format of Prometheus.' }) },
        },
      },
    },
    'GET /v1/openapi.json': {
      id: 'getOpenApi',
      tag: 'server',
      summary: 'Returns this document',
      results: { 200: json(Type.Object({}, { description: 'A document of OpenAPI 3.1.' })) },
    },
  }
}

/** A HEAD request gets the same statuses without a body. */
function probe(path: string, operation: Operation): Operations {
  const statuses = Object.keys(operation.results)
  const head = {
    ...operation,
    id: `${operation.id}Head`,
    results: Object.fromEntries(statuses.map((status) => [status, {}])),
  }
  return { [`GET ${path}`]: operation, [`HEAD ${path}`]: head }
}

function readiness(): TSchema {
  const trouble = fileDamage({ shard: shard() })
  const shards = (description: string): TSchema =>
    Type.Optional(Type.Array(shard(), { description }))
  return Type.Object(
    {
      status: Type.Enum(['ready', 'starting', 'broken', 'no database'], { type: 'string' }),
      away_databases: Type.Optional(
        Type.Array(count('The number of a database.'), {
          description: 'The databases that do not respond.',
        }),
      ),
      poisoned_shards: Type.Optional(
        count('Shards that accept nothing until their disk can be written again.'),
      ),
      damaged: Type.Optional(
        Type.Array(Type.String(), {
          description: 'Copies of damaged files, in the data directory.',
        }),
      ),
      broken_shards: Type.Optional(
        Type.Array(trouble, { description: 'Shards that are set aside.' }),
      ),
      damaged_files: Type.Optional(
        Type.Array(trouble, { description: 'Damage in shards that are served.' }),
      ),
      checking_shards: shards('Shards that are being checked before they are opened.'),
    },
    {
      $id: 'Readiness',
      description:
        'The status, and what needs attention: docs/run/operations.md explains the fields.',
    },
  )
}
