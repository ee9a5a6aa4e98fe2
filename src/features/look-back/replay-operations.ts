/** The calls that push updates again which have left their queue: one at once, or many as a job that can be watched and cancelled. */
import { Type } from 'typebox'
import type { ErrorCode } from '../../kit/errors.ts'
import { updateTypes } from '../../kit/update-types.ts'
import { leftStates, replayStates } from '../../shard/records/replay-record.ts'
import { fieldSchemas } from '../../api/field-schemas.ts'
import { replaysPerSecondMax } from '../../api/limits.ts'
import { updateSelection } from './look-back-operations.ts'
import { botPath, declareOperations } from '../../api/operation.ts'
import { pushResult } from '../../api/update-schemas.ts'

const { count, idempotencyKey, jobId, orNull, preciseTime, time } = fieldSchemas

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
    summary: 'Pushes an update again that has left its queue',
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
    summary: 'Starts a job that pushes updates again which have left their queue',
    description: [
      'An update must match all fields that are given, and must have left before the call. The job goes on after a reload, a crash and a',
      'move of the bot. A queue that is half full pauses it.',
    ].join(' '),
    body: () =>
      Type.Object(
        {
          ...updateSelection(leftStates),
          rate: Type.Integer({
            minimum: 1,
            maximum: replaysPerSecondMax,
            default: replaysPerSecondMax / 10,
            description: 'How many updates are pushed in a second at most.',
          }),
          dry_run: Type.Boolean({
            default: false,
            description: 'Whether the updates are only counted.',
          }),
          idempotency_key: Type.Optional(idempotencyKey()),
        },
        { $id: 'ReplayOrder', additionalProperties: false, description: 'What is replayed.' },
      ),
    result: () => Type.Union([replayJob(), replayCount()], { $id: 'ReplayStart' }),
    errors: ['IDEMPOTENCY_MISMATCH', 'TOO_MANY_REPLAYS', 'BOT_NOT_SERVED', 'DISK_LOW'],
  },
  listReplays: {
    route: `GET ${all}`,
    scope: 'read',
    about: 'queue',
    portal: 'look',
    command: 'replays list',
    columns: ['job_id', 'state', 'started', 'ended', 'total', 'replayed', 'skipped', 'reason'],
    none: 'no replays',
    more: '#replay',
    summary: 'Lists the replays of a queue, the newest first',
    description: 'Those that have ended are listed for a week.',
    result: () =>
      Type.Object(
        { replays: Type.Array(replayJob()) },
        { $id: 'ReplayList', description: 'The jobs that run, and the last that have ended.' },
      ),
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
    summary: 'Ends a replay',
    description: 'What it has pushed stays. One that has ended stays as it is.',
    result: () => replayJob(),
    errors: ['UNKNOWN_REPLAY'],
  },
})

function replayCount() {
  return Type.Object(
    {
      dry_run: Type.Literal(true),
      count: count('How many updates match.'),
      bytes: count('Their bytes.'),
      is_complete: Type.Boolean({
        description: 'Whether all were counted; otherwise there were too many for one call.',
      }),
    },
    { $id: 'ReplayCount', description: 'What would be replayed.' },
  )
}

function replayJob() {
  const skipped = Type.Object({
    filtered: count('Of a type that the bot does not want.'),
    too_large: count('Larger than the server accepts now.'),
    gone: count('Not kept any more when the job came to them; known at its end.'),
  })
  return Type.Object(
    {
      job_id: jobId(),
      state: Type.Enum([...replayStates], { type: 'string' }),
      reason: orNull(Type.String({ description: 'Why the job is paused, or has ended early.' })),
      filter: Type.Object({
        state: orNull(Type.Enum([...leftStates], { type: 'string' })),
        type: orNull(Type.Enum([...updateTypes], { type: 'string' })),
        ordering_key: orNull(Type.String()),
        since: orNull(time('Accepted then or later.')),
        until: time('Accepted before.'),
      }),
      rate: count('How many updates are pushed in a second at most.'),
      started: preciseTime('When the call was made.'),
      ended: orNull(preciseTime('When the job has ended.')),
      total: orNull(count('How many updates matched at the start; null if these were too many.')),
      replayed: count('How many were pushed.'),
      skipped,
      next: count('The job goes on from this id of an update.'),
      end: count('The job ends before this id: the next one when it began.'),
      duplicate: Type.Optional(
        Type.Literal(true, { description: 'An earlier call with this key has started it.' }),
      ),
    },
    { $id: 'Replay', description: 'A job that pushes updates again.' },
  )
}
