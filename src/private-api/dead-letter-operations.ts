/** Describes the routes of dead-letter-routes.ts for docs/reference/openapi.json. */
import { type TSchema, Type } from 'typebox'
import type { ErrorCode } from '../errors.ts'
import { updateTypes } from '../queue/update-types.ts'
import { fieldSchemas } from './field-schemas.ts'
import { json, type Operations } from './operation.ts'
import { updateSchema } from './ingest-operations.ts'

const { count, orNull, removedCount, time, updateId } = fieldSchemas

const tag = 'dead letters'
const all = '/v1/bots/:id/dead-letters'
const one = `${all}/:update_id`
const ofOne = ['UNKNOWN_BOT', 'UNKNOWN_DEAD_LETTER'] as const satisfies readonly ErrorCode[]
const ofReplay = [
  'UNKNOWN_BOT',
  'BOT_NOT_SERVED',
  'QUEUE_FULL',
  'DISK_LOW',
  'ID_SPACE_EXHAUSTED',
] as const satisfies readonly ErrorCode[]

/** Returns the operations of these routes. */
export function deadLetterOperations(): Operations {
  return { ...lookUps(), ...removals(), ...replays() }
}

function lookUps(): Operations {
  const fields = deadLetterFields()
  const list = Type.Object(
    {
      dead_letters: Type.Array(Type.Object(fields, { $id: 'DeadLetterSummary' })),
      total: count('The number of all dead letters of the queue.'),
    },
    { $id: 'DeadLetterList', description: 'One page of the list.' },
  )
  const deadLetter = Type.Object(
    { ...fields, update: updateSchema() },
    { $id: 'DeadLetter', description: 'The dead letter with its update, byte for byte.' },
  )
  return {
    [`GET ${all}`]: {
      id: 'listDeadLetters',
      tag,
      summary: 'Lists dead letters in the order of their ids',
      results: { 200: json(list) },
      errors: ['UNKNOWN_BOT'],
    },
    [`GET ${one}`]: {
      id: 'getDeadLetter',
      tag,
      summary: 'Returns one dead letter',
      results: { 200: json(deadLetter) },
      errors: ofOne,
    },
  }
}

function removals(): Operations {
  const removed = Type.Object(
    { update_id: updateId(), removed: Type.Literal(true) },
    { $id: 'RemovedDeadLetter', description: 'The dead letter that was dropped.' },
  )
  return {
    [`DELETE ${all}`]: {
      id: 'dropDeadLetters',
      tag,
      summary: 'Drops all dead letters',
      results: { 200: json(removedCount()) },
      errors: ['UNKNOWN_BOT'],
    },
    [`DELETE ${one}`]: {
      id: 'dropDeadLetter',
      tag,
      summary: 'Drops one dead letter',
      results: { 200: json(removed) },
      errors: ofOne,
    },
  }
}

function replays(): Operations {
  const replayed = Type.Object(
    { update_id: updateId('The new id of the update.') },
    { $id: 'ReplayedUpdate', description: 'The update that was pushed.' },
  )
  return {
    [`POST ${all}/replay`]: {
      id: 'replayDeadLetters',
      tag,
      summary: 'Pushes all dead letters again, the oldest first',
      description:
        'Stops at the first push that is refused. The response is its error if none was replayed.',
      results: { 200: json(replayList()) },
      errors: ofReplay,
    },
    [`POST ${one}/replay`]: {
      id: 'replayDeadLetter',
      tag,
      summary: 'Pushes one dead letter again',
      results: { 200: json(replayed) },
      errors: [...ofReplay, 'UNKNOWN_DEAD_LETTER'],
    },
  }
}

function replayList(): TSchema {
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

function deadLetterFields(): Record<string, TSchema> {
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
  }
}
