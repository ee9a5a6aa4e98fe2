/** Describes the routes of fleet-routes.ts for docs/reference/openapi.json. */
import { type TSchema, Type } from 'typebox'
import { fieldSchemas } from './field-schemas.ts'
import { json, type Operations } from './operation.ts'

const { botId, botNames, count, health, mode, orNull, preciseTime, shard } = fieldSchemas

/** Returns the operations of these routes. */
export function fleetOperations(): Operations {
  return {
    'GET /v1/bots': {
      id: 'listBots',
      tag: 'bots',
      summary: 'Lists bots with their state, all of them or a selection',
      description:
        'The list is in the order of ids. With `sort` it is in that order and has no next page, so `after` is refused.',
      results: { 200: json(botList()) },
    },
    'GET /v1/summary': {
      id: 'getSummary',
      tag: 'bots',
      summary: 'Returns sums over all bots',
      results: { 200: json(fleetSummary()) },
    },
  }
}

function botList(): TSchema {
  const bot = Type.Object(
    {
      ...botNames(),
      mode: orNull(mode()),
      pending: orNull(count('Updates that wait in the main queue.')),
      oldest_age: orNull(count('The age of the oldest of them, in seconds.')),
      paused: orNull(Type.Boolean({ description: 'Whether the operator has stopped deliveries.' })),
      health: orNull(health()),
      next_attempt: orNull(preciseTime('When the webhook is tried next.')),
    },
    {
      $id: 'ListedBot',
      description:
        'A bot with the state of its main queue. The fields of the state are null while a worker starts.',
    },
  )
  return Type.Object(
    { bots: Type.Array(bot), missing_shards: missingShards() },
    { $id: 'BotList', description: 'One page of the list.' },
  )
}

function fleetSummary(): TSchema {
  const bots = (which: string): TSchema => count(`The number of ${which}.`)
  return Type.Object(
    {
      bots: bots('registered bots'),
      mode: Type.Object({
        polling: bots('bots without a webhook'),
        webhook: bots('bots with a webhook'),
      }),
      health: Type.Object({
        healthy: bots('healthy webhooks'),
        degraded: bots('webhooks with some failures'),
        failing: bots('failing webhooks'),
        paused: bots('paused webhooks'),
        unpolled: bots('bots without a webhook that nobody polls although updates wait'),
      }),
      paused: bots('paused bots, with or without a webhook'),
      pending: count('Updates that wait in the queues of all bots.'),
      pending_bytes: count('Their bytes.'),
      oldest_age: orNull(count('The age of the oldest of them, in seconds.')),
      oldest_bot_id: orNull(botId()),
      oldest_test: orNull(Type.Boolean({ description: 'Whether it is in the /test/ queue.' })),
      dead_letters: count('The number of dead letters.'),
      updates: Type.Object(
        {
          pushed: count('Updates that were stored.'),
          confirmed: count('Updates that bots have confirmed.'),
          delivered: count('Updates that webhooks have accepted.'),
          expired: count('Updates that expired.'),
          refused: count('Pushes that were refused.'),
        },
        { description: 'Counters of /metrics since the start of each node.' },
      ),
      workers: count('The number of workers of all nodes.'),
      shards: count('The number of shards.'),
      missing_shards: missingShards(),
    },
    { $id: 'FleetSummary', description: 'The sums.' },
  )
}

function missingShards(): TSchema {
  return Type.Optional(
    Type.Array(shard(), {
      description: 'The shards whose bots are not covered, if there are any.',
    }),
  )
}
