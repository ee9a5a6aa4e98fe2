/**
 * The calls that push updates, one at a time or as a stream of pairs. Their handlers read their requests by themselves (update-options.ts, pair-header.ts).
 */
import type { ErrorCode } from '../../kit/errors.ts'
import { orderingKeyBytesMax, shardsMax, ttlSMax } from '../../kit/limits.ts'
import * as is from '../../api/words.ts'
import { errorSchema } from '../../api/error-schema.ts'
import { botPath, declareOperations, lines } from '../../api/operation.ts'
import { pushErrors, pushResult, updateSchema } from '../../api/update-schemas.ts'

/** The codes that a pair of a stream can have. The stream itself has those of every call. */
export const pairErrors = [
  ...pushErrors,
  'BAD_REQUEST',
  'UPDATE_TOO_LARGE',
  'STORE_UNAVAILABLE',
  'OUTCOME_UNKNOWN',
  'INTERNAL',
] as const satisfies readonly ErrorCode[]

const streamExample = [
  '{"bot_id":4711,"ordering_key":"42","idempotency_key":"order-42"}',
  '{"message":{"message_id":1,"date":1795259700,"chat":{"id":42,"type":"private"},"text":"one"}}',
  '{"bot_id":4711,"test":true}',
  '{"message":{"message_id":1,"date":1795259700,"chat":{"id":42,"type":"private"},"text":"two"}}',
  '',
].join('\n')
const resultExample = [
  '{"update_id":29090073}',
  '{"error":{"code":"UNKNOWN_BOT","message":"No bot with the id 4711 is registered"}}',
  '',
].join('\n')

export const updateOperations = declareOperations('updates', {
  pushUpdate: {
    route: `POST ${botPath}/updates`,
    scope: 'push',
    about: 'bot',
    command: 'push',
    summary: 'Pushes one update',
    description:
      'An `update_id` in the response means that the update is on disk, synced. The body may be compressed with gzip or deflate.',
    checked: 'nothing',
    query: () => pushOptions(),
    headers: () =>
      is.object({
        'Idempotency-Key': is.optional(idempotencyKey()),
        traceparent: is.optional(
          is.text(`${traced} It is ignored if it is not valid, and without --trace-context.`),
        ),
      }),
    body: () => updateSchema(),
    result: () => pushResult(),
    errors: pushErrors,
  },
  pushUpdates: {
    route: 'POST /v1/updates',
    scope: 'push',
    about: 'pairs',
    lasts: true,
    summary: 'Pushes a stream of updates',
    description: [
      'The body is NDJSON and may last: pairs of lines, a header and its update. The response begins at once and has one line for',
      'each pair, in the order of the pairs, as they are committed. A bad pair fails alone. The server reads on only while the',
      'producer reads the results. OpenAPI describes such a body as one text; `x-ndjson-lines` has the schemas of its lines.',
    ].join(' '),
    checked: 'nothing',
    query: () => ({
      shard: is.optional(
        is.integer(
          'The shard of most of its bots, so that the server need not forward them. It is a hint: any other value counts as none.',
          { minimum: 0, maximum: shardsMax - 1 },
        ),
      ),
    }),
    bodyContent: () =>
      lines([pairHeader(), updateSchema()], {
        description: 'Pairs of lines: a PairHeader and its Update.',
        example: streamExample,
      }),
    results: () => ({
      200: lines(
        [is.either([pushResult(), errorSchema({ name: 'PairError', codes: pairErrors })])],
        {
          description: 'One line for each pair: a PushResult or a PairError.',
          example: resultExample,
        },
      ),
    }),
  },
})

const traced =
  'The place of the producer in a trace (W3C Trace Context), which the endpoint gets with each delivery.'

/** The options that both forms of a push have. */
function pushOptions() {
  return {
    ordering_key: is.optional(orderingKey()),
    ttl: is.optional(
      is.duration(
        'Seconds after which the update is not delivered any more. Default: by its type.',
        { minimum: 1, maximum: ttlSMax },
      ),
    ),
    test: is.optional(is.flag('Whether the update is for the /test/ queue.', { default: false })),
    validate: is.optional(
      is.exactly('telegram', 'Refuses the update if it lacks a field that bot frameworks need.'),
    ),
  }
}

function orderingKey() {
  return is.text(
    `Updates with the same key are delivered one after the other. Up to ${orderingKeyBytesMax} bytes. Default: derived from the update.`,
    { maxLength: orderingKeyBytesMax },
  )
}

function idempotencyKey() {
  return is.idempotencyKey('A push with the same key is stored only once within 24 hours.')
}

/** The first line of a pair. */
export function pairHeader() {
  return is.onlyNamed(
    'PairHeader',
    'The first line of a pair: the bot, and the options of the push.',
    {
      bot_id: is.botId(),
      ...pushOptions(),
      ordering_key: is.optional(is.either([orderingKey(), is.number()])),
      idempotency_key: is.optional(idempotencyKey()),
      traceparent: is.traceparent(`${traced} Only with --trace-context.`),
    },
  )
}
