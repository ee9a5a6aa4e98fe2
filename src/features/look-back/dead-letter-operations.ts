/** The calls about dead letters: the updates that a webhook could not deliver. */
import { updateIdMax } from '../../kit/limits.ts'
import { updateTypes } from '../../kit/update-types.ts'
import * as is from '../../api/words.ts'
import { listedPerPageMax } from '../../api/limits.ts'
import { selectionInState } from './look-back-operations.ts'
import { botPath, declareOperations } from '../../api/operation.ts'
import { replayErrors } from './replay-operations.ts'
import { updateSchema } from '../../api/update-schemas.ts'

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
    query: () => ({ after: is.listAfter(updateIdMax), limit: is.listLimit(listedPerPageMax, 100) }),
    result: () =>
      is.named('DeadLetterList', 'One page of the list.', {
        dead_letters: is.list(is.named('DeadLetterSummary', fields())),
        total: is.count('The number of all dead letters of the queue.'),
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
    summary: 'Pushes all dead letters again, or those that a body selects, the oldest first',
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
    summary: 'Pushes one dead letter again',
    result: () =>
      is.named('ReplayedUpdate', 'The update that was pushed.', {
        update_id: is.updateId('The new id of the update.'),
      }),
    errors: [...replayErrors, 'UNKNOWN_DEAD_LETTER'],
  },
})

function selection() {
  return is.onlyNamed('DeadLetterSelection', 'Which dead letters are replayed.', selectionInState())
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
    reason: is.oneOf(['expired', 'refused']),
    accepted: is.time('When the update was pushed.'),
    time: is.time('When it became a dead letter.'),
    expires: is.time('When the server will remove it.'),
    attempts: is.count('The number of attempts to deliver it.'),
    last_error: is.orNull(is.reason()),
    bytes: is.count('The length of the update without its outer braces.'),
    traceparent: is.traceparent('The place in a trace that it was pushed with.'),
  }
}
