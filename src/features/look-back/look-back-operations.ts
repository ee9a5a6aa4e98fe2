/** The calls that look back: at the updates of a queue, those that wait, those that are kept after they left, and dead letters. */
import { Type } from 'typebox'
import {
  orderingKeyBytesMax,
  retentionBytesMax,
  retentionMsMax,
  updateIdMax,
} from '../../kit/limits.ts'
import { updateStates } from '../../shard/records/replay-record.ts'
import { updateTypes } from '../../kit/update-types.ts'
import { fieldSchemas } from '../../api/field-schemas.ts'
import { listedPerPageMax } from '../../api/limits.ts'
import { botPath, declareOperations } from '../../api/operation.ts'
import { updateSchema } from '../../api/update-schemas.ts'

const { bytes, count, listAfter, listLimit, orNull, preciseTime, time, traceparent, updateId } =
  fieldSchemas

const all = `${botPath}/updates` as const
const one = `${all}/:update_id` as const

export const lookBackOperations = declareOperations('look back', {
  listUpdates: {
    route: `GET ${all}`,
    scope: 'read',
    about: 'queue',
    portal: 'look',
    command: 'updates list',
    columns: [
      'update_id',
      'state',
      'type',
      'ordering_key',
      'accepted',
      'left',
      'attempts',
      'bytes',
      'traceparent',
    ],
    none: 'no such updates',
    more: '#look-back',
    summary: 'Lists updates in the order of their ids, also those that have left and are kept',
    description:
      'One call reads at most 2,000 updates, so a page may have few or none: `next` says where to continue.',
    query: () => ({
      ...updateSelection(updateStates),
      user: person(),
      after: listAfter(updateIdMax),
      before: Type.Optional(
        Type.Integer({
          minimum: 1,
          maximum: updateIdMax + 1,
          description: 'In place of `after`: lists updates with smaller ids, the newest first.',
        }),
      ),
      limit: listLimit(listedPerPageMax, 100),
    }),
    result: () =>
      Type.Object(
        {
          updates: Type.Array(Type.Object(fields(), { $id: 'UpdateSummary' })),
          next: orNull(
            updateId('The value of `after`, or of `before`, for the next page; null at the end.'),
          ),
        },
        { $id: 'UpdateList', description: 'One page of the list.' },
      ),
  },
  getUpdate: {
    route: `GET ${one}`,
    scope: 'read',
    about: 'queue',
    portal: 'look',
    command: 'updates show',
    more: '#look-back',
    summary: 'Returns one update',
    result: () =>
      Type.Object(
        {
          ...fields(),
          latest_attempts: Type.Array(fieldSchemas.attempt(), {
            description: 'Its attempts among the latest of the queue, the newest first.',
          }),
          update: updateSchema(),
        },
        { $id: 'UpdateState', description: 'The update byte for byte, and what became of it.' },
      ),
    errors: ['UNKNOWN_UPDATE'],
  },
  dropUpdate: {
    route: `DELETE ${one}`,
    scope: 'manage',
    about: 'queue',
    command: 'updates drop',
    done: 'dropped {update_id}',
    more: '#look-back',
    summary: 'Removes one update: pending, kept or dead',
    description:
      'A pending update that has failed no longer holds up its ordering key, which is tried at once.',
    result: () =>
      Type.Object(
        { update_id: updateId(), removed: Type.Literal(true) },
        { $id: 'RemovedUpdate', description: 'The update that was removed.' },
      ),
    errors: ['UNKNOWN_UPDATE', 'UPDATE_IN_DELIVERY'],
  },
  eraseUpdates: {
    route: `DELETE ${all}`,
    scope: 'manage',
    about: 'bot',
    command: 'updates erase',
    more: '#erasing-a-person',
    summary: 'Erases all payloads of a person, a chat or an ordering key',
    description:
      'Removes updates that wait, that are kept or that are dead from both queues of the bot, and what the files of its shard still have of them. An attempt to deliver that has begun ends first, so a response may take a minute. After an error the call can be repeated.',
    query: () => ({ user: person(), ordering_key: orderingKey() }),
    result: () =>
      Type.Object(
        {
          removed: Type.Object({
            pending: count('How many updates have waited.'),
            kept: count('How many had left their queue and were kept.'),
            dead: count('How many were dead letters.'),
          }),
          types: Type.Array(
            Type.Object({ type: Type.String(), count: count('How many of `removed` had it.') }),
            { description: 'The types of the updates that were removed.' },
          ),
          attempts: count('How many attempts to deliver them were forgotten.'),
          unreadable: count(
            'How many damaged records were removed, because nobody can tell whose they were.',
          ),
          files: Type.Array(Type.String(), {
            description: 'The copies of damaged files that were removed, within `shards/`.',
          }),
        },
        { $id: 'ErasedUpdates', description: 'What was erased.' },
      ),
    errors: ['UPDATE_IN_DELIVERY'],
  },
  getRetention: {
    route: `GET ${botPath}/retention`,
    scope: 'read',
    about: 'queue',
    portal: 'look',
    command: 'retention',
    more: '#look-back',
    summary: 'Returns how much of updates that have left is kept',
    result: () => retentionState(),
  },
  setRetention: {
    route: `PUT ${botPath}/retention`,
    scope: 'manage',
    about: 'queue',
    command: 'retention',
    more: '#look-back',
    summary: 'Sets how much of updates that have left is kept',
    description: 'With null, the queue follows the options of the server.',
    // "" and false would be taken for null.
    checked: 'names',
    body: () => Type.Object(ownRetention(), { additionalProperties: false }),
    result: () => retentionState(),
  },
})

function ownRetention() {
  return {
    retain: ownBound(retentionMsMax / 1000, 'For how many seconds updates are kept; 0 keeps none.'),
    retain_bytes: ownBound(retentionBytesMax, 'How many bytes the queue keeps at most.'),
  }
}

function ownBound(maximum: number, description: string) {
  return orNull(Type.Integer({ minimum: 0, maximum, description }))
}

function retentionState() {
  const inEffect = Type.Object({
    retain: count('Seconds.'),
    retain_bytes: bytes('Bytes.'),
  })
  return Type.Object(
    {
      ...ownRetention(),
      in_effect: inEffect,
      kept: count('How many updates are kept.'),
      kept_bytes: bytes('Their bytes.'),
    },
    {
      $id: 'RetentionState',
      description: 'What was set, on disk, what follows, and what is kept.',
    },
  )
}

const keyText =
  'Selects the key as it was pushed or is stored, or all keys derived from an id: `chat.id=42`.'

/**
 * The fields that select updates. An update must match all that are given.
 *
 * @param states - what can have become of them
 */
export function updateSelection<State extends string>(states: readonly State[]) {
  return {
    state: Type.Optional(
      Type.Enum([...states], {
        type: 'string',
        description: 'Selects updates with which this has happened.',
      }),
    ),
    ...selectionInState(),
  }
}

function orderingKey() {
  return Type.Optional(Type.String({ maxLength: orderingKeyBytesMax, description: keyText }))
}

/** A text, since the command line would take the sign of a number for that of an option. */
function person() {
  return Type.Optional(
    Type.String({
      pattern: '^-?[1-9][0-9]{0,18}$',
      description:
        'the id of a user or a chat, in up to 19 digits, which the updates name anywhere',
    }),
  )
}

/** The fields that select updates of one state. */
export function selectionInState() {
  return {
    type: Type.Optional(
      Type.Enum([...updateTypes], { type: 'string', description: 'Selects updates of this type.' }),
    ),
    ordering_key: orderingKey(),
    since: Type.Optional(time('Selects updates that were accepted then or later.')),
    until: Type.Optional(time('Selects updates that were accepted before.')),
  }
}

function fields() {
  return {
    update_id: updateId(),
    type: Type.Enum([...updateTypes], { type: 'string' }),
    ordering_key: Type.String(),
    state: Type.Enum([...updateStates], { type: 'string' }),
    accepted: time('When the update was pushed.'),
    left: orNull(preciseTime('When it left the queue; null while it is pending.')),
    attempts: orNull(count('The number of attempts to deliver it; null if it is not known.')),
    last_error: orNull(Type.String()),
    bytes: count('The length of the update without its outer braces.'),
    traceparent: traceparent('The place in a trace that it was pushed with.'),
  }
}
