/** The calls about all bots at once: the list and the summary. */
import { fleetSorts, fleetStates } from '../../kit/states.ts'
import { botIdMax } from '../../kit/limits.ts'
import { namePattern } from '../../api/words.ts'
import * as is from '../../api/words.ts'
import { listedPerPageMax } from '../../api/limits.ts'
import { declareOperations } from '../../api/operation.ts'

export const fleetOperations = declareOperations('bots', {
  listBots: {
    route: 'GET /v1/bots',
    scope: 'read',
    about: 'own',
    command: 'bots list',
    columns: [
      'bot_id',
      'username',
      'health',
      'pending',
      'oldest_age',
      'mode',
      'next_attempt',
      'health_reason',
      'dead_letters',
      'last_taken',
      'last_poll',
    ],
    none: 'no bots',
    more: '#all-bots',
    summary: 'Lists bots with their state, all of them or a selection',
    description:
      'The list is in the order of ids. With `sort` it is in that order and has no next page, so `after` is refused. A key for some bots gets only these.',
    query: () => ({
      after: is.listAfter(botIdMax),
      limit: is.listLimit(listedPerPageMax, 100),
      state: is.optional(
        is.oneOf(fleetStates, 'Selects bots in this state. docs/use/api.md explains the states.'),
      ),
      sort: is.optional(
        is.oneOf(fleetSorts, 'The bots with the highest of these values come first.'),
      ),
      prefix: is.optional(
        is.text(
          '1 to 64 letters, digits or underscores, with which the id or the username begins',
          { pattern: '^[A-Za-z0-9_]{1,64}$' },
        ),
      ),
      search: is.optional(
        is.text(
          "1 to 64 characters, with which the id, the username, or a word of the first name or of the webhook's host begins",
          { pattern: namePattern },
        ),
      ),
      details: is.optional(
        is.flag('Whether each bot has its dead letters and its last activity, too.'),
      ),
    }),
    result: () =>
      is.named('BotList', 'One page of the list.', {
        bots: is.list(listedBot()),
        missing_shards: missingShards(),
      }),
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
  return is.named(
    'ListedBot',
    'A bot with the state of its main queue. The fields of the state are null while a worker starts.',
    {
      ...is.botNames(),
      mode: is.orNull(is.mode()),
      pending: is.orNull(is.count('Updates that wait in the main queue.')),
      oldest_age: is.orNull(is.age('The age of the oldest of them, in seconds.')),
      paused: is.orNull(is.flag('Whether the operator has stopped deliveries.')),
      health: is.orNull(is.health()),
      health_reason: is.optional(
        is.reason(
          'Why its health is degraded, behind, failing or unpolled, or that two clients poll at once; otherwise absent.',
        ),
      ),
      next_attempt: is.orNull(is.preciseTime('When the webhook is tried next.')),
      dead_letters: is.optional(is.orNull(is.count('With `details`: the number of dead letters.'))),
      last_taken: is.optional(
        is.orNull(
          is.time('With `details`: when an update was last confirmed or delivered, if known.'),
        ),
      ),
      last_poll: is.optional(
        is.orNull(is.time('With `details`: when the bot was last seen to poll, if known.')),
      ),
      webhook_host: is.optional(
        is.orNull(is.text('With `details`: the host of the webhook, if there is one.')),
      ),
    },
  )
}

function missingShards() {
  return is.optional(
    is.list(is.shard(), 'The shards whose bots are not covered, if there are any.'),
  )
}

function fleetSummary() {
  return is.named('FleetSummary', 'The sums.', {
    bots: numberOf('registered bots'),
    mode: is.object({
      polling: numberOf('bots without a webhook'),
      webhook: numberOf('bots with a webhook'),
    }),
    health: is.object({
      healthy: numberOf('healthy webhooks'),
      degraded: numberOf(
        'webhooks with some failures, bots with a paused relay, and bots whose polls confirm nothing, fight, or let updates expire',
      ),
      behind: numberOf(
        'bots whose oldest update waits longer and longer, or has waited for half an hour',
      ),
      failing: numberOf('failing webhooks'),
      paused: numberOf('paused webhooks'),
      unpolled: numberOf(
        'bots without a webhook that nobody polls although updates wait or have expired within the hour',
      ),
    }),
    paused: numberOf('paused bots, with or without a webhook'),
    conflicts: is.optional(
      numberOf('bots that two clients poll at once; absent if there are none'),
    ),
    pending: is.count('Updates that wait in the queues of all bots.'),
    pending_bytes: is.bytes('Their bytes.'),
    oldest_age: is.orNull(is.age('The age of the oldest of them, in seconds.')),
    oldest_bot_id: is.orNull(is.botId()),
    oldest_test: is.orNull(is.flag('Whether it is in the /test/ queue.')),
    dead_letters: is.count('The number of dead letters.'),
    updates: is.described('Counters of /metrics since the start of each node.', {
      pushed: is.count('Updates that were stored.'),
      confirmed: is.count('Updates that bots have confirmed.'),
      delivered: is.count('Updates that webhooks have accepted.'),
      expired: is.count('Updates that expired.'),
      refused: is.count('Pushes that were refused.'),
    }),
    delivery: is.described(
      'How long updates waited from when they were stored until they were confirmed or delivered, in the last five minutes.',
      { polling: deliveryPercentiles(), webhook: deliveryPercentiles() },
    ),
    workers: is.count('The number of workers of all nodes.'),
    shards: is.count('The number of shards.'),
    missing_shards: missingShards(),
  })
}

function numberOf(bots: string) {
  return is.count(`The number of ${bots}.`)
}

function deliveryPercentiles() {
  return is.object({ p50_ms: is.percentileMs('Half'), p99_ms: is.percentileMs('99 %') })
}
