/** Describes the route of node-routes.ts for docs/reference/openapi.json. */
import { type TSchema, Type } from 'typebox'
import { fieldSchemas } from './field-schemas.ts'
import { nodeStates, shardStates, workerStates } from './node-report.ts'
import { json, type Operations } from './operation.ts'

const { count, orNull, shard } = fieldSchemas

/** Returns the operations of these routes. */
export function nodeOperations(): Operations {
  return {
    'GET /v1/nodes': {
      id: 'listNodes',
      tag: 'server',
      summary: 'Returns the nodes with their workers and shards',
      description: 'On one machine, this is one node, which has all shards.',
      results: { 200: json(nodeList()) },
    },
  }
}

function nodeList(): TSchema {
  return Type.Object(
    {
      nodes: Type.Array(node(), { description: 'In the order of their names.' }),
      missing_shards: Type.Optional(
        Type.Array(shard(), { description: 'The shards that no node has, if there are any.' }),
      ),
    },
    { $id: 'NodeList', description: 'The nodes.' },
  )
}

function node(): TSchema {
  return Type.Object(
    {
      name: Type.String({ description: 'The name of the node; on one machine, its host name.' }),
      state: Type.Enum([...nodeStates], { type: 'string' }),
      version: orNull(Type.String({ description: 'The version of Postbote.' })),
      uptime: orNull(count('Since the start of the node, in seconds.')),
      heartbeat_age_ms: orNull(
        count('Since its last heartbeat that the database acknowledged, in milliseconds.'),
      ),
      clock_skew_ms: orNull(
        Type.Integer({
          description:
            'How far its clock is ahead of that of the database, in milliseconds; negative if it is behind.',
        }),
      ),
      workers: Type.Array(worker()),
      shards: Type.Array(
        Type.Object({
          shard: shard(),
          worker: orNull(count('The number of its worker.')),
          state: Type.Enum([...shardStates], { type: 'string' }),
        }),
      ),
    },
    {
      $id: 'Node',
      description:
        'A node. An unreachable one has no workers, and the fields that only it knows are null.',
    },
  )
}

function worker(): TSchema {
  return Type.Object(
    {
      worker: count('The number of the worker in its node.'),
      state: Type.Enum([...workerStates], { type: 'string' }),
      pid: orNull(count('Its process.')),
      generation: count('The number of this process of the worker.'),
      restarts: count('How often a process was started because the one before had ended.'),
      uptime: orNull(count('Since it began to serve, in seconds.')),
      event_loop_delay_p99_ms: delayMs('99th percentile of the'),
      event_loop_delay_max_ms: delayMs('longest'),
    },
    { $id: 'Worker', description: 'A worker.' },
  )
}

function delayMs(which: string): TSchema {
  return Type.Number({
    minimum: 0,
    description: `The ${which} event-loop delay of the last minute, in milliseconds.`,
  })
}
