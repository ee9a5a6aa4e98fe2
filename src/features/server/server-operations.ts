/** The calls about the server itself: its health, counters and nodes. */
import * as is from '../../api/words.ts'
import { nodeStates, shardStates, workerStates } from '../../kit/states.ts'
import { serverHistoryMinutes } from '../../api/limits.ts'
import { content, declareOperations, json } from '../../api/operation.ts'

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
    result: () => is.named('Liveness', 'The server runs.', { status: is.exactly('ok') }),
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
      minutes: is.integer('How many minutes are returned, up to the present one.', {
        minimum: 1,
        maximum: serverHistoryMinutes,
        default: serverHistoryMinutes,
      }),
    }),
    result: () => serverHistory(),
  },
  getOpenApi: {
    route: 'GET /v1/openapi.json',
    scope: 'any',
    about: 'nobody',
    summary: 'Returns this document',
    results: () => ({ 200: json(is.described('A document of OpenAPI 3.1.', {})) }),
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
      is.named('UpdateTypeList', 'The types.', {
        types: is.list(knownType(), 'In the order of their numbers.'),
      }),
  },
  listNodes: {
    route: 'GET /v1/nodes',
    scope: 'read',
    about: 'fleet',
    more: '#nodes-and-workers',
    summary: 'Returns the nodes with their workers and shards',
    description: 'On one machine, this is one node, which has all shards.',
    result: () =>
      is.named('NodeList', 'The nodes.', {
        nodes: is.list(node(), 'In the order of their names.'),
        missing_shards: is.optional(
          is.list(is.shard(), 'The shards that no node has, if there are any.'),
        ),
      }),
  },
})

function perMinute(description: string) {
  return is.list(is.orNull(is.count(description)))
}

function deliveryTimes(how: string) {
  return is.described(`From when updates were stored until ${how}.`, {
    p50_ms: is.list(is.percentileMs('Half')),
    p99_ms: is.list(is.percentileMs('99 %')),
  })
}

function serverHistory() {
  return is.named('ServerHistory', 'Lists with one value for each minute, oldest first.', {
    from: is.time('When the first minute begins.'),
    updates: is.object({
      pushed: perMinute('Updates that were stored.'),
      confirmed: perMinute('Updates that bots have confirmed.'),
      delivered: perMinute('Updates that webhooks have accepted.'),
      expired: perMinute('Updates that expired.'),
      refused: perMinute('Pushes that were refused.'),
    }),
    delivery: is.object({
      polling: deliveryTimes('bots confirmed them'),
      webhook: deliveryTimes('webhooks accepted them'),
    }),
  })
}

function readiness() {
  const trouble = is.fileDamage({ shard: is.shard() })
  return is.named(
    'Readiness',
    'The status, and what needs attention: docs/run/operations.md explains the fields.',
    {
      status: is.oneOf(['ready', 'starting', 'broken', 'no database', 'leaving']),
      away_databases: is.optional(
        is.list(is.count('The number of a database.'), 'The databases that do not respond.'),
      ),
      poisoned_shards: is.optional(
        is.count('Shards that accept nothing until their disk can be written again.'),
      ),
      damaged: is.optional(is.list(is.text(), 'Copies of damaged files, in the data directory.')),
      broken_shards: is.optional(is.list(trouble, 'Shards that are set aside.')),
      damaged_files: is.optional(is.list(trouble, 'Damage that a check of open shards has found.')),
      checking_shards: is.optional(
        is.list(is.shard(), 'Shards that are being checked before they are opened.'),
      ),
      unverified_bytes: is.optional(
        is.count('Bytes of open files that are being compared with their checksums.'),
      ),
    },
  )
}

function node() {
  return is.named(
    'Node',
    'A node. An unreachable one has no workers, and the fields that only it knows are null.',
    {
      name: is.text('The name of the node; on one machine, its host name.'),
      state: is.oneOf(nodeStates),
      version: is.orNull(is.text('The version of Postbote.')),
      uptime: is.orNull(is.count('Since the start of the node, in seconds.')),
      heartbeat_age_ms: is.orNull(
        is.count('Since its last heartbeat that the database acknowledged, in milliseconds.'),
      ),
      clock_skew_ms: is.orNull(
        is.integer(
          'How far its clock is ahead of that of the database, in milliseconds; negative if it is behind.',
        ),
      ),
      workers: is.list(worker()),
      shards: is.list(
        is.object({
          shard: is.shard(),
          worker: is.orNull(is.count('The number of its worker.')),
          state: is.oneOf(shardStates),
        }),
      ),
    },
  )
}

function worker() {
  return is.named('Worker', 'A worker.', {
    worker: is.count('The number of the worker in its node.'),
    state: is.oneOf(workerStates),
    pid: is.orNull(is.count('Its process.')),
    generation: is.count('The number of this process of the worker.'),
    restarts: is.count('How often a process was started because the one before had ended.'),
    uptime: is.orNull(is.count('Since it began to serve, in seconds.')),
    event_loop_delay_p99_ms: delayMs('99th percentile of the'),
    event_loop_delay_max_ms: delayMs('longest'),
  })
}

function delayMs(which: string) {
  return is.number(`The ${which} event-loop delay of the last minute, in milliseconds.`, {
    minimum: 0,
  })
}

/** A type of updates that the server knows. */
function knownType() {
  return is.named('UpdateType', 'A type of updates.', {
    type: is.text('Its name.'),
    is_added: is.flag('Whether an option has added it.'),
    is_default: is.flag('Whether bots that set no allowed_updates receive it.'),
    key_paths: is.list(
      is.text(),
      'The places of the ids in its payload from which ordering keys are derived.',
    ),
    ttl: is.shown('duration', is.integer('How many seconds its updates are worth delivering.')),
  })
}
