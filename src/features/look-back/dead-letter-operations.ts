/** The calls about dead letters: the updates that a webhook could not deliver. */
import { Type } from 'typebox'
import { updateIdMax } from '../../kit/limits.ts'
import { updateTypes } from '../../kit/update-types.ts'
import { fieldSchemas } from '../../api/field-schemas.ts'
import { listedPerPageMax } from '../../api/limits.ts'
import { selectionInState } from './look-back-operations.ts'
import { botPath, declareOperations } from '../../api/operation.ts'
import { replayErrors } from './replay-operations.ts'
import { updateSchema } from '../../api/update-schemas.ts'

const { count, listAfter, listLimit, orNull, removedCount, time, traceparent, updateId } =
  fieldSchemas

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
      'type',
      'ordering_key',
      'reason',
      'time',
      'attempts',
      'bytes',
      'last_error',
      'traceparent',
    ],
    none: 'no dead letters',
    summary: 'Lists dead letters in the order of their ids',
    query: () => ({ after: listAfter(updateIdMax), limit: listLimit(listedPerPageMax, 100) }),
    result: () =>
      Type.Object(
        {
          dead_letters: Type.Array(Type.Object(fields(), { $id: 'DeadLetterSummary' })),
          total: count('The number of all dead letters of the queue.'),
        },
        { $id: 'DeadLetterList', description: 'One page of the list.' },
      ),
  },
  getDeadLetter: {
    route: `GET ${one}`,
    scope: 'read',
    about: 'queue',
    portal: 'look',
    command: 'dead-letters show',
    summary: 'Returns one dead letter',
    result: () =>
      Type.Object(
        { ...fields(), update: updateSchema() },
        { $id: 'DeadLetter', description: 'The dead letter with its update, byte for byte.' },
      ),
    errors: ['UNKNOWN_DEAD_LETTER'],
  },
  dropDeadLetters: {
    route: `DELETE ${all}`,
    scope: 'manage',
    about: 'queue',
    command: 'dead-letters drop',
    summary: 'Drops all dead letters',
    result: () => removedCount(),
  },
  dropDeadLetter: {
    route: `DELETE ${one}`,
    scope: 'manage',
    about: 'queue',
    command: 'dead-letters drop',
    summary: 'Drops one dead letter',
    result: () =>
      Type.Object(
        { update_id: updateId(), removed: Type.Literal(true) },
        { $id: 'RemovedDeadLetter', description: 'The dead letter that was dropped.' },
      ),
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
    body: () => orNull(selection()),
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
      Type.Object(
        { update_id: updateId('The new id of the update.') },
        { $id: 'ReplayedUpdate', description: 'The update that was pushed.' },
      ),
    errors: [...replayErrors, 'UNKNOWN_DEAD_LETTER'],
  },
})

function selection() {
  return Type.Object(selectionInState(), {
    $id: 'DeadLetterSelection',
    additionalProperties: false,
    description: 'Which dead letters are replayed.',
  })
}

function replayList() {
  const stopped = Type.Object({
    update_id: updateId(),
    code: Type.String({ description: 'A stable code of docs/reference/errors.md.' }),
    message: Type.String(),
  })
  const pair = Type.Object({ update_id: updateId(), new_update_id: updateId() })
  return Type.Object(
    { replayed: Type.Array(pair), stopped: Type.Optional(stopped) },
    {
      $id: 'ReplayedDeadLetters',
      description: 'What was pushed, and the dead letter that was refused if there is one.',
    },
  )
}

function fields() {
  return {
    update_id: updateId(),
    type: Type.Enum([...updateTypes], { type: 'string' }),
    ordering_key: Type.String(),
    reason: Type.Enum(['expired', 'refused'], { type: 'string' }),
    accepted: time('When the update was pushed.'),
    time: time('When it became a dead letter.'),
    expires: time('When the server will remove it.'),
    attempts: count('The number of attempts to deliver it.'),
    last_error: orNull(Type.String()),
    bytes: count('The length of the update without its outer braces.'),
    traceparent: traceparent('The place in a trace that it was pushed with.'),
  }
}
