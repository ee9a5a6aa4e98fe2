/** Schemas of the fields that several operations have. They are functions, as in all operations (operation.ts). */
import {
  type TArrayOptions,
  type TInteger,
  type TNumber,
  type TProperties,
  type TSchema,
  type TString,
  type TUnion,
  type TNull,
  Type,
} from 'typebox'
import { scopes } from '../kit/rights.ts'
import { healthWords } from '../kit/states.ts'
import { shown, shownNull } from './shown.ts'
import { botIdMax, botIdMin, jobIdMax, updateIdMax } from '../kit/limits.ts'
import { idempotencyKeyLengthMax } from './limits.ts'

/** getMe returns such a name: a lone surrogate or a control character would break strict clients there. */
export const namePattern = '^[^\\u0000-\\u001f\\u007f\\ud800-\\udfff]{1,64}$'

/** Functions that each return a new schema. */
export const fieldSchemas = {
  botId: (): TInteger =>
    Type.Integer({ minimum: botIdMin, maximum: botIdMax, description: 'The id of a bot.' }),
  updateId: (description = 'The id of an update.'): TInteger =>
    Type.Integer({ minimum: 1, maximum: updateIdMax, description }),
  jobId: (): TInteger =>
    Type.Integer({ minimum: 1, maximum: jobIdMax, description: 'The id of a replay.' }),
  shard: (): TInteger => Type.Integer({ minimum: 0, description: 'The number of a shard.' }),
  /** A number of something. */
  count: (description: string): TInteger =>
    Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description }),
  /** A point in time in whole seconds. */
  time: (description: string): TInteger =>
    shown('time', fieldSchemas.count(`${description} In Unix seconds.`)),
  /** A point in time that whole seconds are too coarse for. */
  preciseTime: (description: string): TNumber =>
    shown(
      'time',
      Type.Number({
        minimum: 0,
        description: `${description} In Unix seconds, with milliseconds.`,
      }),
    ),
  /** How long ago something was, in whole seconds. */
  age: (description: string): TInteger => shown('age', fieldSchemas.count(description)),
  bytes: (description: string): TInteger => shown('bytes', fieldSchemas.count(description)),
  /** How often something may be in a second. */
  perSecond: (description: string): TInteger => shown('rate', fieldSchemas.count(description)),
  /** A time that something took, in whole milliseconds. */
  ms: (description: string): TInteger => shown('ms', fieldSchemas.count(description)),
  /** How long a share of updates took at most, such as `Half`. */
  percentileMs: (share: string) =>
    fieldSchemas.orNull(
      shown(
        'ms',
        Type.Number({
          minimum: 0,
          description: `${share} of the updates took no longer. In milliseconds; null without any.`,
        }),
      ),
    ),
  idempotencyKey: (
    description = `1 to ${idempotencyKeyLengthMax} printable ASCII characters`,
  ): TString =>
    Type.String({ pattern: `^[\\x20-\\x7e]{1,${idempotencyKeyLengthMax}}$`, description }),
  /** A field that only what has a trace has. */
  traceparent: (description: string) =>
    Type.Optional(
      Type.String({ pattern: '^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$', description }),
    ),
  /** How a bot gets its updates. */
  mode: () => Type.Enum(['polling', 'webhook'], { type: 'string' }),
  /** The health of a queue. */
  health: () => Type.Enum([...healthWords], { type: 'string' }),
  /** What a key may do. */
  scopes: (options: TArrayOptions = {}) =>
    Type.Array(Type.Enum([...scopes], { type: 'string' }), options),
  /** The fields of botSummaryJson. */
  botNames: () => ({
    bot_id: fieldSchemas.botId(),
    first_name: Type.String(),
    username: Type.String(),
    created_at: fieldSchemas.time('When the bot was registered.'),
  }),
  /** A header of a request or of a response. */
  shownHeader: () =>
    Type.Object({ name: Type.String(), value: Type.String() }, { $id: 'ShownHeader' }),
  /** An attempt to deliver an update. */
  attempt: () =>
    Type.Object(
      {
        time: fieldSchemas.preciseTime('When the attempt ended.'),
        update_id: fieldSchemas.orNull(fieldSchemas.updateId()),
        address: fieldSchemas.orNull(Type.String()),
        status: fieldSchemas.orNull(Type.Integer({ minimum: 100, maximum: 999 })),
        duration_ms: fieldSchemas.ms('How long it took, in milliseconds.'),
        error: fieldSchemas.orNull(Type.String()),
        response_body: fieldSchemas.orNull(
          Type.String({
            description:
              'The beginning of the response to an attempt that failed, as text without secrets; null if it is not kept (`--attempt-body`).',
          }),
        ),
        response_headers: fieldSchemas.orNull(
          Type.Array(fieldSchemas.shownHeader(), {
            description:
              'Some headers of this response, without secrets; null if its body would not be kept either.',
          }),
        ),
        next_retry: fieldSchemas.orNull(
          fieldSchemas.preciseTime('When the update is tried again at the earliest.'),
        ),
        traceparent: fieldSchemas.traceparent('The place in its trace that the endpoint got.'),
      },
      { $id: 'Attempt' },
    ),
  /** A damaged place in a file. */
  fileDamage: <More extends TProperties>(more: More) =>
    Type.Object({
      ...more,
      file: Type.String({ description: 'The path of the file, or of the directory of the shard.' }),
      offset: Type.Optional(fieldSchemas.count('Where the damage is in the file, in bytes.')),
      reason: Type.String({ description: 'What was found.' }),
    }),
  /** The number of things that a call has removed. */
  removedCount: () =>
    Type.Object(
      { removed: Type.Integer({ minimum: 0, description: 'How many there were.' }) },
      { $id: 'RemovedCount', description: 'The number of what was removed.' },
    ),
  /** A list starts above this id. */
  listAfter: (maximum: number): TInteger => Type.Integer({ minimum: 0, maximum, default: 0 }),
  /** The length of a list. */
  listLimit: (maximum: number, usual: number): TInteger =>
    Type.Integer({ minimum: 1, maximum, default: usual }),
  /** How many seconds what is replaced stays valid. */
  overlap: (maximum: number) => Type.Optional(Type.Integer({ minimum: 0, maximum })),
  /** A value that may be null, for which people read this word. */
  orNull: <Schema extends TSchema>(schema: Schema, word = '-'): TUnion<[Schema, TNull]> =>
    shownNull(word, Type.Union([schema, Type.Null()])),
} as const
