/** The calls about the server itself: its health, counters and nodes. */
import { Type } from 'typebox'
import { fieldSchemas } from '../../api/field-schemas.ts'
import { nodeStates, shardStates, workerStates } from '../../kit/states.ts'
import { serverHistoryMinutes } from '../../api/limits.ts'
import { content, declareOperations, json } from '../../api/operation.ts'

const { count, orNull, percentileMs, shard, time } = fieldSchemas

/** Some probes send HEAD and use only the status. */
const probe = { scope: 'open', about: 'nobody' } as const
const health = { ...probe, summary: 'Reports whether the server runs' } as const
const ready = {
  ...probe,
  more: '../run/operations.md#health',
  summary: 'Reports whether the server serves, and what needs attention',
  // A worker whose shards this one asks about may be gone.
  errors: ['STORE_UNAVAILABLE', 'OUTCOME_UNKNOWN'],
} as const

export const serverOperations = declareOperations('server', {
  checkHealth: {
    ...health,
    route: 'GET /healthz',
    result: () =>
      Type.Object(
        { status: Type.Literal('ok') },
        { $id: 'Liveness', description: 'The server runs.' },
      ),
  },
  checkHealthHead: { ...health, route: 'HEAD /healthz', results: () => ({ 200: {} }) },
  checkReadiness: {
    ...ready,
    route: 'GET /readyz',
    result: () => readiness(),
    results: () => ({ 200: json(readiness()), 503: json(readiness()) }),
  },
  checkReadinessHead: { ...ready, route: 'HEAD /readyz', results: () => ({ 200: {}, 503: {} }) },
  getMetrics: {
    route: 'GET /metrics',
    scope: 'read',
    about: 'fleet',
    summary: 'Returns the counters of all workers',
    results: () => ({ 200: content('text/plain', 'The text format of Prometheus.') }),
  },
  getServerHistory: {
    route: 'GET /v1/history',
    scope: 'read',
    about: 'fleet',
    command: 'server history',
    more: '#history',
    summary: 'Returns what the server did in the last day, minute by minute',
    description:
      'Each list has one value for each minute, and null for one in which no node ran. The last minute is not over yet.',
    query: () => ({
      minutes: Type.Integer({
        minimum: 1,
        maximum: serverHistoryMinutes,
        default: serverHistoryMinutes,
        description: 'How many minutes are returned, up to the present one.',
      }),
    }),
    result: () => serverHistory(),
  },
  getOpenApi: {
    route: 'GET /v1/openapi.json',
    scope: 'any',
    about: 'nobody',
    summary: 'Returns this document',
    results: () => ({ 200: json(Type.Object({}, { description: 'A document of OpenAPI 3.1.' })) }),
  },
  listUpdateTypes: {
    route: 'GET /v1/update-types',
    scope: 'any',
    about: 'nobody',
    command: 'server types',
    columns: ['type', 'is_added', 'is_default', 'key_paths', 'ttl'],
    more: 'protocol.md#73-added-types',
    summary: 'Returns the types of updates that the server knows',
    description: 'The types of the contract, then those that the server was started with.',
    result: () =>
      Type.Object(
        { types: Type.Array(knownType(), { description: 'In the order of their numbers.' }) },
        { $id: 'UpdateTypeList', description: 'The types.' },
      ),
  },
  listNodes: {
    route: 'GET /v1/nodes',
    scope: 'read',
    about: 'fleet',
    more: '#nodes-and-workers',
    summary: 'Returns the nodes with their workers and shards',
    description: 'On one machine, this is one node, which has all shards.',
    result: () =>
      Type.Object(
        {
          nodes: Type.Array(node(), { description: 'In the order of their names.' }),
          missing_shards: Type.Optional(
            Type.Array(shard(), { description: 'The shards that no node has, if there are any.' }),
          ),
        },
        { $id: 'NodeList', description: 'The nodes.' },
      ),
  },
})

function perMinute(description: string) {
  return Type.Array(orNull(count(description)))
}

function deliveryTimes(how: string) {
  return Type.Object(
    { p50_ms: Type.Array(percentileMs('Half')), p99_ms: Type.Array(percentileMs('99 %')) },
    { description: `From when updates were stored until ${how}.` },
  )
}

function serverHistory() {
  return Type.Object(
    {
      from: time('When the first minute begins.'),
      updates: Type.Object({
        pushed: perMinute('Updates that were stored.'),
        confirmed: perMinute('Updates that bots have confirmed.'),
        delivered: perMinute('Updates that webhooks have accepted.'),
        expired: perMinute('Updates that expired.'),
        refused: perMinute('Pushes that were refused.'),
      }),
      delivery: Type.Object({
        polling: deliveryTimes('bots confirmed them'),
        webhook: deliveryTimes('webhooks accepted them'),
      }),
    },
    { $id: 'ServerHistory', description: 'Lists with one value for each minute, oldest first.' },
  )
}

function readiness() {
  const trouble = fieldSchemas.fileDamage({ shard: shard() })
  const shards = (description: string) => Type.Optional(Type.Array(shard(), { description }))
  return Type.Object(
    {
      status: Type.Enum(['ready', 'starting', 'broken', 'no database', 'leaving'], {
        type: 'string',
      }),
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
        Type.Array(trouble, { description: 'Damage that a check of open shards has found.' }),
      ),
      checking_shards: shards('Shards that are being checked before they are opened.'),
      unverified_bytes: Type.Optional(
        count('Bytes of open files that are being compared with their checksums.'),
      ),
    },
    {
      $id: 'Readiness',
      description:
        'The status, and what needs attention: docs/run/operations.md explains the fields.',
    },
  )
}

function node() {
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

function worker() {
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

function delayMs(which: string) {
  return Type.Number({
    minimum: 0,
    description: `The ${which} event-loop delay of the last minute, in milliseconds.`,
  })
}

/** A type of updates that the server knows. */
function knownType() {
  return Type.Object(
    {
      type: Type.String({ description: 'Its name.' }),
      is_added: Type.Boolean({ description: 'Whether an option has added it.' }),
      is_default: Type.Boolean({
        description: 'Whether bots that set no allowed_updates receive it.',
      }),
      key_paths: Type.Array(Type.String(), {
        description: 'The places of the ids in its payload from which ordering keys are derived.',
      }),
      ttl: Type.Integer({ description: 'How many seconds its updates are worth delivering.' }),
    },
    { $id: 'UpdateType', description: 'A type of updates.' },
  )
}
