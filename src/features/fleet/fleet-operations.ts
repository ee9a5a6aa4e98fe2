/** The calls about all bots at once: the list and the summary. */
import { Type } from 'typebox'
import { fleetSorts, fleetStates } from '../../kit/states.ts'
import { botIdMax } from '../../kit/limits.ts'
import { fieldSchemas, namePattern } from '../../api/field-schemas.ts'
import { listedPerPageMax } from '../../api/limits.ts'
import { declareOperations } from '../../api/operation.ts'

const {
  age,
  botId,
  botNames,
  bytes,
  count,
  health,
  listAfter,
  listLimit,
  mode,
  orNull,
  percentileMs,
  preciseTime,
  shard,
  time,
} = fieldSchemas

export const fleetOperations = declareOperations('bots', {
  listBots: {
    route: 'GET /v1/bots',
    scope: 'read',
    about: 'fleet',
    command: 'bots list',
    columns: [
      'bot_id',
      'username',
      'mode',
      'pending',
      'oldest_age',
      'health',
      'next_attempt',
      'dead_letters',
      'last_taken',
      'last_poll',
    ],
    none: 'no bots',
    more: '#all-bots',
    summary: 'Lists bots with their state, all of them or a selection',
    description:
      'The list is in the order of ids. With `sort` it is in that order and has no next page, so `after` is refused.',
    query: () => ({
      after: listAfter(botIdMax),
      limit: listLimit(listedPerPageMax, 100),
      state: Type.Optional(
        Type.Enum([...fleetStates], {
          type: 'string',
          description: 'Selects bots in this state. docs/use/api.md explains the states.',
        }),
      ),
      sort: Type.Optional(
        Type.Enum([...fleetSorts], {
          type: 'string',
          description: 'The bots with the highest of these values come first.',
        }),
      ),
      prefix: Type.Optional(
        Type.String({
          pattern: '^[A-Za-z0-9_]{1,64}$',
          description:
            '1 to 64 letters, digits or underscores, with which the id or the username begins',
        }),
      ),
      search: Type.Optional(
        Type.String({
          pattern: namePattern,
          description:
            '1 to 64 characters, with which the id, the username or a word of the first name begins',
        }),
      ),
      details: Type.Optional(
        Type.Boolean({
          description: 'Whether each bot has its dead letters and its last activity, too.',
        }),
      ),
    }),
    result: () =>
      Type.Object(
        { bots: Type.Array(listedBot()), missing_shards: missingShards() },
        { $id: 'BotList', description: 'One page of the list.' },
      ),
  },
  getSummary: {
    route: 'GET /v1/summary',
    scope: 'read',
    about: 'fleet',
    command: 'summary',
    more: '#all-bots',
    summary: 'Returns sums over all bots',
    result: () => fleetSummary(),
  },
})

function listedBot() {
  return Type.Object(
    {
      ...botNames(),
      mode: orNull(mode()),
      pending: orNull(count('Updates that wait in the main queue.')),
      oldest_age: orNull(age('The age of the oldest of them, in seconds.')),
      paused: orNull(Type.Boolean({ description: 'Whether the operator has stopped deliveries.' })),
      health: orNull(health()),
      next_attempt: orNull(preciseTime('When the webhook is tried next.')),
      dead_letters: Type.Optional(orNull(count('With `details`: the number of dead letters.'))),
      last_taken: Type.Optional(
        orNull(time('With `details`: when an update was last confirmed or delivered, if known.')),
      ),
      last_poll: Type.Optional(
        orNull(time('With `details`: when the bot was last seen to poll, if known.')),
      ),
    },
    {
      $id: 'ListedBot',
      description:
        'A bot with the state of its main queue. The fields of the state are null while a worker starts.',
    },
  )
}

function missingShards() {
  return Type.Optional(
    Type.Array(shard(), {
      description: 'The shards whose bots are not covered, if there are any.',
    }),
  )
}

function fleetSummary() {
  const bots = (which: string) => count(`The number of ${which}.`)
  return Type.Object(
    {
      bots: bots('registered bots'),
      mode: Type.Object({
        polling: bots('bots without a webhook'),
        webhook: bots('bots with a webhook'),
      }),
      health: Type.Object({
        healthy: bots('healthy webhooks'),
        degraded: bots(
          'webhooks with some failures, bots with a paused relay, and bots whose polls confirm nothing, fight, or let updates expire',
        ),
        behind: bots('webhooks whose oldest update waits longer and longer'),
        failing: bots('failing webhooks'),
        paused: bots('paused webhooks'),
        unpolled: bots(
          'bots without a webhook that nobody polls although updates wait or have expired within the hour',
        ),
      }),
      paused: bots('paused bots, with or without a webhook'),
      pending: count('Updates that wait in the queues of all bots.'),
      pending_bytes: bytes('Their bytes.'),
      oldest_age: orNull(age('The age of the oldest of them, in seconds.')),
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
      delivery: Type.Object(
        { polling: deliveryPercentiles(), webhook: deliveryPercentiles() },
        {
          description:
            'How long updates waited from when they were stored until they were confirmed or delivered, in the last five minutes.',
        },
      ),
      workers: count('The number of workers of all nodes.'),
      shards: count('The number of shards.'),
      missing_shards: missingShards(),
    },
    { $id: 'FleetSummary', description: 'The sums.' },
  )
}

function deliveryPercentiles() {
  return Type.Object({ p50_ms: percentileMs('Half'), p99_ms: percentileMs('99 %') })
}
