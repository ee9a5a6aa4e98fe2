/**
 * What the workers of a server ask each other, beside the requests of clients: one row for each question.
 *
 * On the link (cluster/link), a question is a POST request to `/internal/<path>`, with its fields in the query, or as JSON in the
 * body, and the answer is JSON. Nodes of the version before ask and answer in the same way, so a row changes only as records on
 * disk do: a new field is optional, and a new question has a new path.
 */
import { type TSchema, Type } from 'typebox'
import type { KeyUses } from '../../access/access-key-ring.ts'
import type { AccessKeyTable } from '../../access/access-key-table.ts'
import type { BotList, ShardSums } from '../../bots/bot-service.ts'
import type { FleetQuery } from '../../features/fleet/fleet-status.ts'
import { accessKeysMax } from '../../kit/limits.ts'
import { fleetOperations } from '../../features/fleet/fleet-operations.ts'
import { eventsQuery } from '../../features/events/event-operations.ts'
import { querySchema, type QueryOf, type ResultOf } from '../../api/operation.ts'
import { serverOperations } from '../../features/server/server-operations.ts'
import type { RecordedCall } from '../../shard/records/audit-record.ts'
import type { NodePage, NodeQuestion } from '../../features/events/event-stream.ts'
import { tailSilenceMs } from '../../kit/private-api-limits.ts'
import type { NodeReport } from '../../process/node-report.ts'
import type { ServerMinute } from '../../kit/server-minute.ts'

/** A question, with the types of its input and of its answer. */
export interface Question<Input, Answer> {
  readonly path: string
  /** The schema of an input that is sent as a query. Any other input is sent as JSON. */
  readonly query?: (() => TSchema | undefined) | undefined
  /** Only for the compiler. */
  readonly types?: (input: Input) => Answer
}

/** The version of the keys that a worker has, and the uses that it has noticed. */
export interface KeyQuestion {
  readonly version: string
  readonly uses: KeyUses
}

/** What one worker contributes to the summary. */
export interface SummaryPart {
  readonly sums: readonly ShardSums[]
  /** Of the node; undefined if another worker of it answers for them. */
  readonly counters: ResultOf<typeof fleetOperations.getSummary>['updates'] | undefined
  /** The last minutes of the node, likewise. Nodes of the version before have none. */
  readonly minutes?: readonly ServerMinute[] | undefined
}

export const questions = {
  /** Which bots of its shards match? */
  bots: asks<FleetQuery, BotList>('bot-list', () => querySchema(fleetOperations.listBots)),
  /** What are the sums of its bots, for each shard? */
  summary: asks<undefined, SummaryPart>('summary'),
  /** What did its node do in the last minutes? Only the first worker of a node tells. */
  history: asks<
    QueryOf<typeof serverOperations.getServerHistory>,
    { readonly minutes: readonly ServerMinute[] }
  >('history', () => querySchema(serverOperations.getServerHistory)),
  /** Which of its bots have this username? */
  botsNamed: asks<{ readonly username: string }, readonly number[]>('bots-named', () =>
    Type.Object({ username: Type.String() }),
  ),
  /** What is the state of its node? */
  node: asks<undefined, NodeReport>('node'),
  /** What comes next in the log of its node? Only the first worker of a node answers; others refuse with NOT_FOUND. */
  events: asks<Omit<NodeQuestion, 'waitMs'> & { readonly wait: number }, NodePage>('events', () =>
    Type.Object(
      { ...eventsQuery(), wait: Type.Integer({ minimum: 0, maximum: tailSilenceMs }) },
      { additionalProperties: false },
    ),
  ),
  /** Which keys are there? Asks the owner of shard 0, which answers without keys if the worker has its version. */
  keys: asks<KeyQuestion, AccessKeyTable | Pick<AccessKeyTable, 'version'>>('keys'),
  /** Stores recorded calls. For the owner of shard 0. A call that is stored again is there once. */
  recordCalls: asks<readonly RecordedCall[], Readonly<Record<string, never>>>('record-calls'),
  /** The keys have changed: does it know them now? */
  keysChanged: asks<undefined, { readonly isTold: boolean }>('keys-changed'),
  /** A session has ended: its number, and the place of its key. */
  sessionEnded: asks<
    { readonly slot: number; readonly session: string },
    Readonly<Record<string, never>>
  >('session-ended', () =>
    Type.Object(
      {
        slot: Type.Integer({ minimum: 0, maximum: accessKeysMax }),
        session: Type.String({ pattern: '^[0-9]{1,19}$' }),
      },
      { additionalProperties: false },
    ),
  ),
}

type Questions = typeof questions
export type QuestionName = keyof Questions

type TypesOf<Name extends QuestionName> = NonNullable<Questions[Name]['types']>
export type InputOf<Name extends QuestionName> = Parameters<TypesOf<Name>>[0]
export type AnswerOf<Name extends QuestionName> = ReturnType<TypesOf<Name>>

/** What a worker answers. */
export type Answers = {
  readonly [Name in QuestionName]: (input: InputOf<Name>) => Promise<AnswerOf<Name>>
}

function asks<Input, Answer>(
  path: string,
  query?: Question<Input, Answer>['query'],
): Question<Input, Answer> {
  return { path: `/internal/${path}`, query }
}
