/** The calls that push updates again which have left their queue: one at once, or many as a job that can be watched and cancelled. */
import type { ErrorCode } from '../../kit/errors.ts'
import { updateTypes } from '../../kit/update-types.ts'
import { leftStates, replayStates } from '../../shard/records/replay-record.ts'
import * as is from '../../api/words.ts'
import { replaysPerSecondMax } from '../../api/limits.ts'
import { updateSelection } from './look-back-operations.ts'
import { botPath, declareOperations } from '../../api/operation.ts'
import { pushResult } from '../../api/update-schemas.ts'

const all = `${botPath}/replays` as const
const one = `${all}/:job_id` as const

/** The codes of the push of an update that is replayed. */
export const replayErrors = [
  'BOT_NOT_SERVED',
  'QUEUE_FULL',
  'DISK_LOW',
  'ID_SPACE_EXHAUSTED',
] as const satisfies readonly ErrorCode[]

export const replayOperations = declareOperations('look back', {
  replayUpdate: {
    route: `POST ${botPath}/updates/:update_id/replay`,
    scope: 'manage',
    about: 'queue',
    portal: 'replay',
    command: 'updates replay',
    more: '#replay',
    summary: 'Delivers an update again that has left its queue',
    description: 'It gets a new id, after all pending updates. A dead letter is removed.',
    result: () => pushResult(),
    errors: [...replayErrors, 'UNKNOWN_UPDATE', 'UPDATE_PENDING'],
  },
  startReplay: {
    route: `POST ${botPath}/updates/replay`,
    scope: 'manage',
    about: 'queue',
    portal: 'replay',
    command: 'updates replay',
    more: '#replay',
    summary: 'Starts a job that delivers updates again which have left their queue',
    description: [
      'An update must match all fields that are given, and must have left before the call. The job goes on after a reload, a crash and a',
      'move of the bot. A queue that is half full pauses it.',
    ].join(' '),
    body: () =>
      is.onlyNamed('ReplayOrder', 'What is delivered again.', {
        ...updateSelection(leftStates),
        rate: is.integer('How many updates are pushed in a second at most.', {
          minimum: 1,
          maximum: replaysPerSecondMax,
          default: replaysPerSecondMax / 10,
        }),
        dry_run: is.flag('Whether the updates are only counted.', { default: false }),
        idempotency_key: is.optional(is.idempotencyKey()),
      }),
    result: () => is.either([replayJob(), replayCount()], { $id: 'ReplayStart' }),
    errors: ['IDEMPOTENCY_MISMATCH', 'TOO_MANY_REPLAYS', 'BOT_NOT_SERVED', 'DISK_LOW'],
  },
  listReplays: {
    route: `GET ${all}`,
    scope: 'read',
    about: 'queue',
    portal: 'look',
    command: 'replays list',
    columns: ['job_id', 'state', 'started', 'replayed', 'total', 'reason', 'ended', 'skipped'],
    none: 'no replays',
    more: '#replay',
    summary: 'Lists the replays of a queue, the newest first',
    description: 'Those that have ended are listed for a week.',
    result: () =>
      is.named('ReplayList', 'The jobs that run, and the last that have ended.', {
        replays: is.list(replayJob()),
      }),
  },
  getReplay: {
    route: `GET ${one}`,
    scope: 'read',
    about: 'queue',
    portal: 'look',
    command: 'replays show',
    more: '#replay',
    summary: 'Returns one replay',
    result: () => replayJob(),
    errors: ['UNKNOWN_REPLAY'],
  },
  cancelReplay: {
    route: `POST ${one}/cancel`,
    scope: 'manage',
    about: 'queue',
    portal: 'replay',
    command: 'replays cancel',
    more: '#replay',
    summary: 'Cancels a replay',
    description: 'What it has pushed stays. One that has ended stays as it is.',
    result: () => replayJob(),
    errors: ['UNKNOWN_REPLAY'],
  },
})

function replayCount() {
  return is.named('ReplayCount', 'What would be delivered again.', {
    dry_run: is.exactly(true),
    count: is.count('How many updates match.'),
    bytes: is.count('Their bytes.'),
    is_complete: is.flag('Whether all were counted; otherwise there were too many for one call.'),
  })
}

function replayJob() {
  const skipped = is.object({
    filtered: is.count('Of a type that the bot does not want.'),
    too_large: is.count('Larger than the server accepts now.'),
    gone: is.count('Not kept any more when the job came to them; known at its end.'),
  })
  return is.named('Replay', 'A job that delivers updates again.', {
    job_id: is.jobId(),
    state: is.oneOf(replayStates),
    reason: is.orNull(is.reason('Why the job is paused, or has ended early.')),
    filter: is.object({
      state: is.orNull(is.oneOf(leftStates)),
      type: is.orNull(is.oneOf(updateTypes)),
      ordering_key: is.orNull(is.name()),
      since: is.orNull(is.time('Accepted then or later.')),
      until: is.time('Accepted before.'),
    }),
    rate: is.count('How many updates are pushed in a second at most.'),
    started: is.preciseTime('When the call was made.'),
    ended: is.orNull(is.preciseTime('When the job has ended.')),
    total: is.orNull(
      is.count('How many updates matched at the start; null if these were too many.'),
    ),
    replayed: is.count('How many were pushed.'),
    skipped,
    next: is.count('The job goes on from this id of an update.'),
    end: is.count('The job ends before this id: the next one when it began.'),
    duplicate: is.optional(is.exactly(true, 'An earlier call with this key has started it.')),
  })
}
