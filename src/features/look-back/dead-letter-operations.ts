/** The calls about dead letters: the updates that a webhook could not deliver. */
import { updateIdMax, webhookErrorLengthMax } from '../../kit/limits.ts'
import { updateTypes } from '../../kit/update-types.ts'
import * as is from '../../api/words.ts'
import { listedPerPageMax } from '../../api/limits.ts'
import { excerptSchema, selectionInState, withExcerpt } from './look-back-operations.ts'
import { botPath, declareOperations } from '../../api/operation.ts'
import { replayErrors } from './replay-operations.ts'
import { updateSchema } from '../../api/update-schemas.ts'

const groupColumns = ['count', 'bots', 'reason', 'error', 'oldest', 'newest'] as const
const deadLetterReasons = ['expired', 'refused'] as const

const all = `${botPath}/dead-letters` as const
const one = `${all}/:update_id` as const

export const deadLetterOperations = declareOperations('dead letters', {
  listDeadLetters: {
    route: `GET ${all}`,
    scope: 'read',
    about: 'queue',
    portal: 'look',
    command: 'dead-letters list',
    columns: [
      'update_id',
      'time',
      'reason',
      'type',
      'last_error',
      'ordering_key',
      'attempts',
      'bytes',
      'traceparent',
    ],
    none: 'no dead letters',
    summary: 'Lists dead letters in the order of their ids',
    query: () => ({
      after: is.listAfter(updateIdMax),
      limit: is.listLimit(listedPerPageMax, 100),
      excerpt: withExcerpt(),
      ...selectionByReason(),
    }),
    result: () =>
      is.named('DeadLetterList', 'One page of the list.', {
        dead_letters: is.list(
          is.named('DeadLetterSummary', { ...fields(), excerpt: is.optional(excerptSchema()) }),
        ),
        total: is.count('The number of all dead letters of the queue.'),
      }),
  },
  sumDeadLetters: {
    route: `GET ${all}/reasons`,
    scope: 'read',
    about: 'queue',
    portal: 'look',
    command: 'dead-letters reasons',
    columns: groupColumns,
    none: 'no dead letters',
    more: '#dead-letters-by-reason',
    summary: 'Returns the dead letters of a queue by their reasons',
    result: () => is.named('DeadLetterReasons', 'Why they are dead, the most first.', sums()),
  },
  sumAllDeadLetters: {
    route: 'GET /v1/dead-letters/reasons',
    scope: 'read',
    about: 'fleet',
    command: 'dead-letters reasons',
    columns: groupColumns,
    none: 'no dead letters',
    more: '#dead-letters-by-reason',
    summary: 'Returns the dead letters of all bots by their reasons',
    description: 'A worker looks at no more than 50,000 dead letters.',
    result: () =>
      is.named('AllDeadLetterReasons', 'Why they are dead, the most first.', {
        ...sums(),
        missing_shards: is.optional(
          is.list(is.shard(), 'The shards whose bots are not covered, if there are any.'),
        ),
      }),
  },
  getDeadLetter: {
    route: `GET ${one}`,
    scope: 'read',
    about: 'queue',
    portal: 'look',
    command: 'dead-letters show',
    summary: 'Returns one dead letter',
    result: () =>
      is.named('DeadLetter', 'The dead letter with its update, byte for byte.', {
        ...fields(),
        update: updateSchema(),
      }),
    errors: ['UNKNOWN_DEAD_LETTER'],
  },
  dropDeadLetters: {
    route: `DELETE ${all}`,
    scope: 'manage',
    about: 'queue',
    command: 'dead-letters drop',
    summary: 'Drops all dead letters',
    result: () => is.removedCount(),
  },
  dropDeadLetter: {
    route: `DELETE ${one}`,
    scope: 'manage',
    about: 'queue',
    command: 'dead-letters drop',
    summary: 'Drops one dead letter',
    result: () =>
      is.named('RemovedDeadLetter', 'The dead letter that was dropped.', {
        update_id: is.updateId(),
        removed: is.exactly(true),
      }),
    errors: ['UNKNOWN_DEAD_LETTER'],
  },
  replayDeadLetters: {
    route: `POST ${all}/replay`,
    scope: 'manage',
    about: 'queue',
    portal: 'replay',
    command: 'dead-letters replay',
    summary: 'Delivers all dead letters again, or those that a body selects, the oldest first',
    description:
      'Stops at the first push that is refused. The response is its error if none was replayed.',
    body: () => is.orNull(selection()),
    result: () => replayList(),
    errors: replayErrors,
  },
  replayDeadLetter: {
    route: `POST ${one}/replay`,
    scope: 'manage',
    about: 'queue',
    portal: 'replay',
    command: 'dead-letters replay',
    summary: 'Delivers one dead letter again',
    result: () =>
      is.named('ReplayedUpdate', 'The update that was pushed.', {
        update_id: is.updateId('The new id of the update.'),
      }),
    errors: [...replayErrors, 'UNKNOWN_DEAD_LETTER'],
  },
})

function sums() {
  const queue = is.named('DeadLetterGroupQueue', 'The dead letters of one queue in a group.', {
    ...is.botNames(),
    test: is.flag('Whether it is the /test/ queue.'),
    count: is.count('How many it has.'),
    update_id: is.updateId('The newest of them.'),
  })
  const group = is.named('DeadLetterGroup', 'Dead letters with one reason.', {
    reason: is.oneOf(deadLetterReasons),
    error: is.orNull(is.text('The class of their last errors: without what differs.')),
    count: is.count('How many there are.'),
    bots: is.count('How many bots have them.'),
    oldest: is.time('When the first of them became a dead letter.'),
    newest: is.time('When the last of them did.'),
    queues: is.list(queue, 'Those with the most, at most 100.'),
  })
  return {
    groups: is.list(group),
    looked_at: is.count('How many dead letters the sums are of.'),
    is_complete: is.flag('Whether these are all; otherwise there were too many for one call.'),
  }
}

function selection() {
  return is.onlyNamed('DeadLetterSelection', 'Which dead letters are delivered again.', {
    ...selectionInState(),
    ...selectionByReason(),
  })
}

/** The fields that select the dead letters of one group. */
function selectionByReason() {
  return {
    reason: is.optional(is.oneOf(deadLetterReasons, 'Selects what expired, or was refused.')),
    error: is.optional(
      is.text('Selects those whose last error is of this class, as the sums by reason name it.', {
        maxLength: webhookErrorLengthMax,
      }),
    ),
  }
}

function replayList() {
  const stopped = is.object({
    update_id: is.updateId(),
    code: is.text('A stable code of docs/reference/errors.md.'),
    message: is.text(),
  })
  const pair = is.object({ update_id: is.updateId(), new_update_id: is.updateId() })
  return is.named(
    'ReplayedDeadLetters',
    'What was pushed, and the dead letter that was refused if there is one.',
    { replayed: is.list(pair), stopped: is.optional(stopped) },
  )
}

function fields() {
  return {
    update_id: is.updateId(),
    type: is.oneOf(updateTypes),
    ordering_key: is.name(),
    reason: is.oneOf(deadLetterReasons),
    accepted: is.time('When the update was pushed.'),
    time: is.time('When it became a dead letter.'),
    expires: is.time('When the server will remove it.'),
    attempts: is.count('The number of attempts to deliver it.'),
    last_error: is.orNull(is.reason()),
    bytes: is.count('The length of the update without its outer braces.'),
    traceparent: is.traceparent('The place in a trace that it was pushed with.'),
  }
}
