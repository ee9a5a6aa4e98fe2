/**
 * The form of a row in the table of operations: everything about one call of the private API that is not code. What is told
 * about a call anywhere is derived from its row:
 *
 *     row --+--> route of Fastify, with the checks of its query and body   (private-api/add-operations.ts)
 *           +--> rights that a key needs                                  (access/assert-may.ts)
 *           +--> which worker serves it, and whether it lasts             (operation-of.ts)
 *           +--> docs/reference/openapi.json                                        (features/server/openapi-document.ts)
 *           +--> the call in the command line, and the types of the page  (target-of.ts)
 *           +--> the command, and what people read of the result          (cli/remote/remote-command.ts, result-lines.ts)
 *           +--> the table of calls in docs, and the calls that test/fuzz sends
 *
 * To add a call, write its row in the file of operations of its feature and its handler in the file of routes beside it. A new
 * group also needs a line in modules/api-operations.ts, and one in modules/private-api.ts unless a module adds it (`addCalls`). A handler whose result differs from its
 * row does not compile.
 *
 * The words for its fields are in words.ts. All schemas are behind functions: a worker makes those of queries and bodies at its
 * start, and those of results only if somebody asks for the document. A row imports nothing of the server but lists of words
 * and bounds.
 */
import assert from 'node:assert/strict'
import { type Static, type TObject, type TProperties, type TSchema, Type } from 'typebox'
import type { ErrorCode } from '../kit/errors.ts'
import type { PortalRight, NeededScope } from '../kit/rights.ts'

/**
 * Whom a call is about.
 *
 *     bot     the bot in the path, which leads to the worker that has the bot; a key must be for it
 *     queue   as `bot`, and one of its queues: `test` in the query selects that of its /test/ namespace
 *     own     the bots that a key is for: the handler leaves out all others, and tells nothing of them
 *     pairs   the bots of a stream; the stream checks a key for each pair
 *     fleet   all bots, so a key for some bots may not make it
 *     keys    the keys of the API, which the worker of one shard has; a key for some bots may not make it
 *     shard   the shard in the path, which leads to its worker; a key for some bots may not make it
 *     nobody  no bot: any key may make it that has the scope
 */
export type Subject = 'bot' | 'queue' | 'own' | 'pairs' | 'fleet' | 'keys' | 'shard' | 'nobody'

/** The path of a bot, below which most calls are. */
export const botPath = '/v1/bots/:id'

export type Verb = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** What is declared of a call. */
export interface OperationRow {
  /** The verb and the path of the route. A part with a colon is a parameter. */
  readonly route: `${Verb} /${string}`
  /** What a key needs. `open`: the call needs no key. */
  readonly scope: NeededScope | 'open'
  readonly about: Subject
  /** Whether the response goes on for as long as its reader wants. */
  readonly lasts?: true
  /** Whether the call needs a key itself, and a session does not stand for it. */
  readonly needsKey?: true
  /** The right that lets a link of the owner's page make this call, below `/portal`. Absent: no link may make it. */
  readonly portal?: PortalRight
  /** As a sentence that begins with a verb. */
  readonly summary: string
  readonly description?: string
  /** The part of the documentation that says more, as a link from docs/use/api.md. */
  readonly more?: string
  /** The command that makes the call, such as `bots show`. */
  readonly command?: string
  /** The command shows the list in the result as a table with these fields of its items. */
  readonly columns?: readonly string[]
  /** What the command says of an empty list. */
  readonly none?: string
  /** What the command says in place of the result: `{name}` is a parameter of the path or a field of the result. */
  readonly done?: string
  /**
   * What is left to the handler, because the check of Fastify converts values: `names`, so that the values of the body are
   * only looked at by the handler; or `nothing`, and the handler reads the request itself. Default: Fastify checks all.
   */
  readonly checked?: 'names' | 'nothing'
  /** The fields of the query, without `test`. */
  readonly query?: () => TProperties
  readonly headers?: () => TObject
  /** A body that may be null may be left out. */
  readonly body?: () => TSchema
  /** Of a body that is not JSON. */
  readonly bodyContent?: () => Content
  /** The body of a response with status 200, in JSON. */
  readonly result?: () => TSchema
  /** In place of `result`: the bodies of all responses that are no errors, by their status. */
  readonly results?: () => Readonly<Record<number, Content>>
  /** The codes that this call can get in addition to those of all calls and of its subject. */
  readonly errors?: readonly ErrorCode[]
}

/** What follows from the place of a row. */
interface OperationName {
  /** The `operationId`, after which generated clients name their methods. */
  readonly id: string
  readonly tag: OperationTag
  readonly method: Verb
  /** As Fastify writes it: `/v1/bots/:id`. */
  readonly path: string
}

/** A declared call. */
export interface Operation extends OperationRow, OperationName {}

/** The calls of a group, by their ids. */
export type Operations = Readonly<Record<string, Operation>>

/** The media types of a body. None: there is no body. */
export type Content = Readonly<Record<string, MediaType>>

export interface MediaType {
  readonly schema: TSchema
  readonly example?: string
  /**
   * The schemas of the lines of NDJSON, which repeat. OpenAPI 3.1 can describe such a body only as one text, so this
   * field is an extension.
   */
  readonly 'x-ndjson-lines'?: readonly TSchema[]
}

/** The groups of calls in the document. */
export const operationTags = {
  updates: 'Pushing updates, and watching what is pushed',
  'look back': 'Updates that wait, and those that have left and are kept',
  bots: 'Registering, listing and removing bots',
  webhooks: 'Attempts to deliver to webhooks, pauses and limits',
  'dead letters': 'Updates that a webhook could not deliver',
  'signing keys': 'The keys that sign deliveries',
  "owner's page": 'Links that show a bot to its owner, who has no key',
  keys: 'The keys of this API, beside the admin key',
  server: 'Health, metrics and checks of the server, and sessions',
} as const

export type OperationTag = keyof typeof operationTags

type Declared<Rows> = {
  readonly [Id in keyof Rows & string]: Rows[Id] & OperationName & { readonly id: Id }
}

/**
 * Declares the calls of a group.
 *
 * @param tag - the group in the document
 * @param rows - by their ids, in the order of the document
 */
export function declareOperations<const Rows extends Readonly<Record<string, OperationRow>>>(
  tag: OperationTag,
  rows: Rows,
): Declared<Rows> {
  const declared = Object.entries(rows).map(([id, row]) => {
    assert(row.done === undefined || row.columns === undefined, `${id} is shown in one way`)
    const space = row.route.indexOf(' ')
    const parts = { id, tag, method: row.route.slice(0, space), path: row.route.slice(space + 1) }
    return [id, { ...row, ...parts }]
  })
  return Object.fromEntries(declared)
}

/** Returns the content of a body in JSON. */
export function json(schema: TSchema): Content {
  return { 'application/json': { schema } }
}

/** Returns the content of a body that is no JSON. */
export function content(type: string, description: string): Content {
  return { [type]: { schema: Type.String({ description }) } }
}

/** Returns the content of a body in NDJSON, with the schemas of its lines, which repeat. */
export function lines(
  schemas: readonly TSchema[],
  { description, example }: { readonly description: string; readonly example: string },
): Content {
  const mediaType = { schema: Type.String({ description }), example, 'x-ndjson-lines': schemas }
  return { 'application/x-ndjson': mediaType }
}

/**
 * Returns the schema of the query of a call; undefined if its fields are not declared. Of a call about a queue it has `test`:
 * unknown parameters are refused, because with a misspelled `test` the call would affect the queue of real users.
 */
export function querySchema({ about, query }: OperationRow): TObject | undefined {
  if (query === undefined && about !== 'queue') return undefined
  const test = about === 'queue' ? { test: Type.Boolean({ default: false }) } : {}
  return Type.Object({ ...test, ...query?.() }, { additionalProperties: false })
}

/** The names of the parameters in a path. */
export type ParamNames<Route extends string> = Route extends `${string}:${infer Name}/${infer Rest}`
  ? Name | ParamNames<`/${Rest}`>
  : Route extends `${string}:${infer Name}`
    ? Name
    : never

/** The value of a schema function, which nobody changes. */
type ValueOf<Schema> = Schema extends () => TSchema
  ? Unchanging<Static<ReturnType<Schema>>>
  : undefined

/** A field that may be absent may be undefined: JSON leaves it out. */
type IfOptional<Value, Name extends keyof Value> =
  object extends Pick<Value, Name> ? undefined : never

export type Unchanging<Value> = Value extends readonly (infer Item)[]
  ? readonly Unchanging<Item>[]
  : Value extends object
    ? { readonly [Name in keyof Value]: Unchanging<Value[Name]> | IfOptional<Value, Name> }
    : Value

/** The query of a call, after defaults were filled in. */
export type QueryOf<Row extends OperationRow> = (Row['query'] extends () => TProperties
  ? Unchanging<Static<TObject<ReturnType<Row['query']>>>>
  : unknown) &
  (Row['about'] extends 'queue' ? { readonly test: boolean } : unknown)

/** The body of a call. */
export type BodyOf<Row extends OperationRow> = ValueOf<Row['body']>

/** The body of the response to a call that has succeeded, if that is JSON. */
export type ResultOf<Row extends OperationRow> = ValueOf<Row['result']>

/**
 * Returns whether a call is recorded: whatever may change bots, their queues or keys, and the checks of shards. A push is
 * none, and a session changes nothing by itself.
 */
export function isAudited({ method, scope }: Pick<Operation, 'method' | 'scope'>): boolean {
  return (scope === 'manage' || scope === 'all') && method !== 'GET' && method !== 'HEAD'
}

/** Whether a call pushes one update. */
export function isSinglePush(operation: Operation | undefined): boolean {
  return operation?.scope === 'push' && operation.about === 'bot'
}

/** Whether a call pushes a stream of pairs. */
export function isPushStream(operation: Operation | undefined): boolean {
  return operation?.about === 'pairs'
}

/** Whether a call pushes updates. Pushes are the hot paths, and have limits of their own. */
export function isPush(operation: Operation | undefined): boolean {
  return isSinglePush(operation) || isPushStream(operation)
}
