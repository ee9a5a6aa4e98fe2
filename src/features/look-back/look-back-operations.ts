/** The calls that look back: at the updates of a queue, those that wait, those that are kept after they left, and dead letters. */
import {
  orderingKeyBytesMax,
  retentionBytesMax,
  retentionMsMax,
  updateIdMax,
} from '../../kit/limits.ts'
import { updateStates } from '../../shard/records/replay-record.ts'
import { updateTypes } from '../../kit/update-types.ts'
import * as is from '../../api/words.ts'
import { listedPerPageMax } from '../../api/limits.ts'
import { botPath, declareOperations } from '../../api/operation.ts'
import { updateSchema } from '../../api/update-schemas.ts'

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
      'accepted',
      'type',
      'ordering_key',
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
      after: is.listAfter(updateIdMax),
      before: is.optional(
        is.integer('In place of `after`: lists updates with smaller ids, the newest first.', {
          minimum: 1,
          maximum: updateIdMax + 1,
        }),
      ),
      limit: is.listLimit(listedPerPageMax, 100),
      excerpt: withExcerpt(),
    }),
    result: () =>
      is.named('UpdateList', 'One page of the list.', {
        updates: is.list(
          is.named('UpdateSummary', { ...fields(), excerpt: is.optional(excerptSchema()) }),
        ),
        next: is.orNull(
          is.updateId('The value of `after`, or of `before`, for the next page; null at the end.'),
        ),
      }),
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
      is.named('UpdateState', 'The update byte for byte, and what became of it.', {
        ...fields(),
        latest_attempts: is.list(
          is.attempt(),
          'Its attempts among the latest of the queue, the newest first.',
        ),
        update: updateSchema(),
      }),
    errors: ['UNKNOWN_UPDATE'],
  },
  dropUpdate: {
    route: `DELETE ${one}`,
    scope: 'manage',
    about: 'queue',
    command: 'updates drop',
    done: 'dropped {update_id}',
    more: '#look-back',
    summary: 'Drops one update: pending, kept or dead',
    description:
      'A pending update that has failed no longer holds up its ordering key, which is tried at once.',
    result: () =>
      is.named('RemovedUpdate', 'The update that was dropped.', {
        update_id: is.updateId(),
        removed: is.exactly(true),
      }),
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
      is.named('ErasedUpdates', 'What was erased.', {
        removed: is.object({
          pending: is.count('How many updates have waited.'),
          kept: is.count('How many had left their queue and were kept.'),
          dead: is.count('How many were dead letters.'),
        }),
        types: is.list(
          is.object({ type: is.text(), count: is.count('How many of `removed` had it.') }),
          'The types of the updates that were removed.',
        ),
        attempts: is.count('How many attempts to deliver them were forgotten.'),
        unreadable: is.count(
          'How many damaged records were removed, because nobody can tell whose they were.',
        ),
        files: is.list(
          is.text(),
          'The copies of damaged files that were removed, within `shards/`.',
        ),
      }),
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
    body: () => is.only(ownRetention()),
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
  return is.orNull(is.integer(description, { minimum: 0, maximum }))
}

function retentionState() {
  const inEffect = is.object({
    retain: is.shown('duration', is.count('Seconds.')),
    retain_bytes: is.bytes('Bytes.'),
  })
  return is.named('RetentionState', 'What was set, on disk, what follows, and what is kept.', {
    ...ownRetention(),
    in_effect: inEffect,
    kept: is.count('How many updates are kept.'),
    kept_bytes: is.bytes('Their bytes.'),
  })
}

/** The field of a list that asks for excerpts. */
export function withExcerpt() {
  return is.optional(is.flag('Whether each has who and what it is about, in a few words.'))
}

/** Who and what an update is about. */
export function excerptSchema() {
  const party = is.object({
    id: is.text('In digits.'),
    name: is.optional(is.text('The title, or the first and the last name.')),
    username: is.optional(is.text()),
  })
  return is.described('With `excerpt`: who and what it is about.', {
    from: is.optional(party),
    chat: is.optional(party),
    content: is.optional(is.text('What it has beside text, such as `photo`.')),
    text: is.optional(is.text('Its first 80 characters, on one line.')),
  })
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
    state: is.optional(is.oneOf(states, 'Selects updates with which this has happened.')),
    ...selectionInState(),
  }
}

function orderingKey() {
  return is.optional(is.text(keyText, { maxLength: orderingKeyBytesMax }))
}

/** A text, since the command line would take the sign of a number for that of an option. */
function person() {
  return is.optional(
    is.text('the id of a user or a chat, in up to 19 digits, which the updates name anywhere', {
      pattern: '^-?[1-9][0-9]{0,18}$',
    }),
  )
}

/** The fields that select updates of one state. */
export function selectionInState() {
  return {
    type: is.optional(is.oneOf(updateTypes, 'Selects updates of this type.')),
    ordering_key: orderingKey(),
    since: is.optional(is.time('Selects updates that were accepted then or later.')),
    until: is.optional(is.time('Selects updates that were accepted before.')),
  }
}

function fields() {
  return {
    update_id: is.updateId(),
    type: is.oneOf(updateTypes),
    ordering_key: is.text(),
    // A node of an earlier version sends neither this nor `waits_for`.
    subject: is.optional(
      is.orNull(
        is.text(
          'Whose updates have this ordering key, such as `chat 42`; null if it is of nobody, or of the producer.',
        ),
      ),
    ),
    state: is.oneOf(updateStates),
    accepted: is.time('When the update was pushed.'),
    left: is.orNull(is.preciseTime('When it left the queue; null while it is pending.')),
    attempts: is.orNull(is.count('The number of attempts to deliver it; null if it is not known.')),
    last_error: is.orNull(is.text()),
    bytes: is.count('The length of the update without its outer braces.'),
    traceparent: is.traceparent('The place in a trace that it was pushed with.'),
    waits_for: is.optional(is.orNull(keyWait())),
  }
}

function keyWait() {
  return is.named(
    'KeyWait',
    'What a pending update of a webhook waits for; null of others, and while nothing is known of its ordering key.',
    {
      update_id: is.updateId(
        'The update of its ordering key that comes first: this one, or an older one that it waits behind.',
      ),
      failures: is.count('How often that one has failed since the server was started.'),
      last_error: is.orNull(is.reason()),
      next_attempt: is.orNull(
        is.preciseTime('When that one is tried again at the earliest; null if no time is set.'),
      ),
    },
  )
}
