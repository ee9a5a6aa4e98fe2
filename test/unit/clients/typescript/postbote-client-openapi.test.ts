/**
 * Compares the types that postbote/client publishes with the schemas that docs/reference/openapi.json shows. The compiler does it:
 * this file does not compile if they differ.
 */
import { test } from 'node:test'
import type { Static, TObject, TSchema } from 'typebox'
import type {
  AnyPayloads,
  BotState,
  IssuedToken,
  NewBot,
  PostboteClient,
  PostboteClientErrorCode,
  PushedUpdate,
  PushOptions,
  PushResult,
  StreamPushOptions,
} from '../../../../clients/typescript/postbote-client.ts'
import type { botOperations } from '../../../../src/features/bots/bot-operations.ts'
import type { commonErrors } from '../../../../src/api/error-schema.ts'
import type { BodyOf } from '../../../../src/api/operation.ts'
import type {
  pairErrors,
  pairHeader,
  updateOperations,
} from '../../../../src/features/ingest/update-operations.ts'
import type { pushErrors } from '../../../../src/api/update-schemas.ts'

type Result<Row extends { readonly result: () => TSchema }> = Static<ReturnType<Row['result']>>
type Push = typeof updateOperations.pushUpdate
type PushQuery = Static<TObject<ReturnType<Push['query']>>>
type PushHeaders = Static<ReturnType<Push['headers']>>
type Update = Static<ReturnType<Push['body']>>

/** The names of the client that are not the names of the wire in another spelling. */
interface OtherNames {
  readonly pending: 'pendingCount'
  readonly ttl: 'ttlS'
  readonly overlap: 'overlapS'
  readonly test: 'isTest'
  readonly duplicate: 'isDuplicate'
  readonly filtered: 'isFiltered'
  readonly 'Idempotency-Key': 'idempotencyKey'
}

type CamelCase<Name extends string> = Name extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<CamelCase<Tail>>}`
  : Name

type ClientName<Name extends string> = Name extends keyof OtherNames
  ? OtherNames[Name]
  : CamelCase<Name>

/** An object of the wire with the names of the client. */
type Renamed<Wire> = {
  [Name in keyof Wire as ClientName<Name & string>]: Wire[Name]
}

/** An object whose optional fields cannot be undefined. */
type Given<Options> = { [Name in keyof Options]: Exclude<Options[Name], undefined> }

type Fits<From, To> = [From] extends [To] ? true : false
type Same<A, B> = [Fits<A, B>, Fits<B, A>] extends [true, true] ? true : false

/** Does not compile with `false`. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the constraint is the check
function holds<_Claim extends true>(): void {}

test('the client registers a bot with the fields of the document', () => {
  type Wire = Renamed<Given<BodyOf<typeof botOperations.createBot>>>
  holds<Same<NewBot, Wire>>()
  holds<Same<keyof NewBot, keyof Wire>>()
})

test('the client reads a new token with the fields of the document', () => {
  holds<Same<IssuedToken, Renamed<Result<typeof botOperations.rotateToken>>>>()
  type Options = NonNullable<Parameters<PostboteClient['rotateToken']>[1]>
  holds<
    Same<Given<Options>, Renamed<Given<NonNullable<BodyOf<typeof botOperations.rotateToken>>>>>
  >()
})

test('the state of a bot that the client returns is a part of the state in the document', () => {
  type Wire = Renamed<Result<typeof botOperations.getBot>>
  holds<Same<BotState, Pick<Wire, keyof BotState>>>()
})

test('the client pushes the updates of the document', () => {
  holds<Fits<PushedUpdate, Update>>()
  holds<Same<keyof AnyPayloads, keyof Update>>()
})

test('the client sends the options of a push that the document has, and all of them', () => {
  type Header = Renamed<Omit<Static<ReturnType<typeof pairHeader>>, 'bot_id'>>
  holds<Fits<Given<StreamPushOptions>, Header>>()
  holds<Same<keyof StreamPushOptions, keyof Header>>()
  type Query = Renamed<PushQuery & PushHeaders>
  holds<Same<Given<Omit<PushOptions, 'signal'>>, Query>>()
})

test('the client reads the results of the document, and no others', () => {
  type Wire = Result<Push>
  type Stored = Extract<Wire, { readonly update_id: number }>
  type Filtered = Extract<Wire, { readonly filtered: true }>
  holds<Same<Wire, Stored | Filtered>>()
  holds<Same<Renamed<Filtered>, Extract<PushResult, { readonly isFiltered: true }>>>()
  type StoredResult = Omit<Extract<PushResult, { readonly isFiltered: false }>, 'isFiltered'>
  holds<Same<keyof Renamed<Stored>, keyof StoredResult>>()
  holds<Fits<Given<Required<Renamed<Stored>>>, StoredResult>>()
})

test('the client knows every code that the document has for its calls', () => {
  type Code = (typeof commonErrors | typeof pushErrors | typeof pairErrors)[number]
  holds<Fits<Code, PostboteClientErrorCode>>()
})
