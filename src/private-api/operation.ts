/**
 * What docs/reference/openapi.json says about a call of the private API and its route does not: names, texts, results, errors.
 *
 * The schemas with which a route checks its query and its body are shown as they are (openapi-document.ts). Everything
 * else is in tables of operations, one file of them beside each file of routes. Fastify does not see these: it would
 * compile the schemas of responses into serializers, which drop fields that they do not know and take time at each start.
 * The tables are functions for the same reason: no schema of them is made before somebody asks for the document.
 */
import { type TSchema, Type } from 'typebox'
import type { ErrorCode } from '../errors.ts'

export interface Operation {
  /** The `operationId`, after which generated clients name their methods. */
  readonly id: string
  readonly tag: OperationTag
  readonly summary: string
  readonly description?: string
  /** The bodies of the responses that are no errors, by their status. */
  readonly results: Readonly<Record<number, Content>>
  /** The codes that this call can get in addition to `commonErrors`, or to `openErrors` if it needs no key. */
  readonly errors?: readonly ErrorCode[]
  /** Whether the call needs no key. */
  readonly isOpen?: boolean
  /** Whether the call needs a key itself, and a session does not stand for it. */
  readonly needsKey?: boolean
  /** The parts of the request that the route reads by itself, without a schema of Fastify. */
  readonly query?: TSchema
  readonly headers?: TSchema
  readonly body?: Content
}

/** The operations of some routes, by verb and path of the route: `GET /v1/bots/:id`. */
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
  bots: 'Registering, listing and removing bots',
  webhooks: 'Attempts to deliver to webhooks, pauses and limits',
  'dead letters': 'Updates that a webhook could not deliver',
  'signing keys': 'The keys that sign deliveries',
  keys: 'The keys of this API, beside the admin key',
  server: 'Health, metrics and checks of the server, and sessions',
} as const

export type OperationTag = keyof typeof operationTags

/** The codes that any call can get, with or without a key. */
export const openErrors = [
  'BAD_REQUEST',
  'BAD_HOST',
  'REQUEST_TIMEOUT',
  'HEADERS_TOO_LARGE',
  'INTERNAL',
  'UNAVAILABLE',
  'TOO_MANY_CONNECTIONS',
] as const satisfies readonly ErrorCode[]

/** The codes that any call with a key or a session can get: a request is checked, counted and forwarded before its route. */
export const commonErrors = [
  ...openErrors,
  'UNAUTHORIZED',
  'CROSS_SITE_REQUEST',
  'KEY_LACKS_SCOPE',
  'KEY_LACKS_BOT',
  'KEY_OVER_LIMIT',
  'KEYS_UNAVAILABLE',
  'NOT_FOUND',
  'VERB_NOT_ALLOWED',
  'REQUEST_TOO_LARGE',
  'UPDATE_TOO_LARGE',
  'TOO_MANY_REQUESTS',
  'TOO_MANY_BODIES',
  'STORE_UNAVAILABLE',
  'SHARD_BROKEN',
  'OUTCOME_UNKNOWN',
] as const satisfies readonly ErrorCode[]

/** Returns the content of a body in JSON. */
export function json(schema: TSchema): Content {
  return { 'application/json': { schema } }
}

/**
 * Returns the schema of an error.
 *
 * @param kind - The name of the component, and the codes that it can have. Default: the schema of all error responses;
 *   each operation names the codes that it can get.
 */
export function errorSchema(kind?: {
  readonly name: string
  readonly codes: readonly ErrorCode[]
}): TSchema {
  const { name = 'Error', codes } = kind ?? {}
  const code = Type.String({
    description: 'A stable code of docs/reference/errors.md.',
    ...(codes === undefined ? {} : { enum: codes }),
  })
  const message = Type.String({ description: 'A text for people. It may change.' })
  return Type.Object({ error: Type.Object({ code, message }) }, { $id: name })
}
