/** Adds the routes of calls to an app, as the table of operations declares them. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type TSchema, Type } from 'typebox'
import type { CallTable } from '../api/call-table.ts'
import { portalPrefix } from '../http/target.ts'
import type { BotQueue } from '../bots/bot-queue.ts'
import type { BotRegistry } from '../bots/registry.ts'
import { botIdMax, botIdMin } from '../kit/limits.ts'
import {
  type BodyOf,
  type Operation,
  type Operations,
  type ParamNames,
  querySchema,
  type QueryOf,
  type ResultOf,
} from '../api/operation.ts'
import { auditOf, recorded } from './record-calls.ts'
import { refusal } from '../api/update-options.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** The calls of the server; undefined if it has all. */
    calls?: CallTable | undefined
  }
  interface FastifyContextConfig {
    /** The call that the route serves; undefined for a route between workers. */
    operation?: Operation
  }
}

/** A call as its handler gets it, checked. A handler that checks the request itself gets all of it as it is. */
export interface HandledCall<Row extends Operation = Operation> {
  readonly request: FastifyRequest
  readonly reply: FastifyReply
  readonly params: {
    readonly [Name in ParamNames<Row['route']>]: Row['checked'] extends 'nothing'
      ? string
      : Name extends 'id' | 'update_id' | 'job_id'
        ? number
        : string
  }
  readonly query: Row['checked'] extends 'nothing'
    ? Readonly<Record<string, unknown>>
    : QueryOf<Row>
  readonly body: Row['checked'] extends 'names'
    ? { readonly [Name in keyof BodyOf<Row>]: unknown }
    : BodyOf<Row>
}

/** Serves a call: returns its result, or sends the response itself. */
export type Handler<Row extends Operation> = (
  call: HandledCall<Row>,
) => Promise<(Row['result'] extends () => TSchema ? ResultOf<Row> : unknown) | FastifyReply>

/** The handlers of a group of calls. */
export type HandlersOf<Group extends Operations> = {
  readonly [Id in keyof Group]: Handler<Group[Id]>
}

/** Adds the routes of a group. */
export function addOperations<Group extends Operations>(
  app: FastifyInstance,
  group: Group,
  handlers: HandlersOf<Group>,
): void {
  for (const id in group) addOperation(app, group[id] as Group[typeof id], handlers[id])
}

/** Adds the route of one call, if the server has it; below `/portal` only if links of the owner's page may make it. */
export function addOperation<Row extends Operation>(
  app: FastifyInstance,
  operation: Row,
  handler: Handler<Row>,
): void {
  const { method, path, checked, portal } = operation
  if (app.prefix === portalPrefix && portal === undefined) return
  if (app.calls?.has(operation) === false) return
  const querystring = checked === 'nothing' ? undefined : querySchema(operation)
  const body = checked === 'nothing' ? undefined : bodySchema(operation)
  const audit = auditOf(app, operation)
  const handle = (request: FastifyRequest, reply: FastifyReply): ReturnType<Handler<Row>> =>
    handler(handledCall(operation, request, reply))
  app.route({
    method,
    url: path,
    // Fastify warns of a schema that is undefined.
    schema: {
      ...(querystring === undefined ? {} : { querystring }),
      ...(body === undefined ? {} : { body }),
    },
    config: { operation },
    ...(audit === undefined ? { handler: handle } : recorded(handle, audit)),
  })
}

function handledCall<Row extends Operation>(
  { checked }: Row,
  request: FastifyRequest,
  reply: FastifyReply,
): HandledCall<Row> {
  const params = checked === 'nothing' ? request.params : readParams(request.params)
  const { query, body } = request
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the schemas of the route have checked it
  return { request, reply, params, query, body } as HandledCall<Row>
}

/** Returns the queue that a call is about. Rejects with UNKNOWN_BOT. */
export function queueOf(
  bots: BotRegistry,
  {
    params,
    query,
  }: { readonly params: { readonly id: number }; readonly query: { readonly test: boolean } },
): Promise<BotQueue> {
  return bots.queueOf(params.id, query.test)
}

function bodySchema({ body, checked }: Operation): TSchema | undefined {
  const schema = body?.()
  if (schema === undefined || checked !== 'names' || !Type.IsObject(schema)) return schema
  const names = Object.entries(schema.properties).map(([name, each]) => [
    name,
    Type.IsOptional(each) ? Type.Optional(Type.Unknown()) : Type.Unknown(),
  ])
  return Type.Object(Object.fromEntries(names), { additionalProperties: false })
}

function readParams(params: unknown): object {
  const read: Record<string, unknown> = {}
  for (const [name, text] of Object.entries(Object(params))) {
    if (name === 'id') read[name] = botIdParam(String(text))
    else if (name === 'update_id') read[name] = idParam('update id', String(text))
    else if (name === 'job_id') read[name] = idParam('job id', String(text))
    else read[name] = text
  }
  return read
}

/**
 * Parses the bot id in a path as strictly as http/target.ts, which finds the bot's owner. `0x64` and `1e2` would be
 * numbers, too, but of a bot that this worker may not own.
 *
 * @throws PostboteError BAD_REQUEST for anything that is not a bot id.
 */
export function botIdParam(text: string): number {
  const botId = /^[1-9]\d{2,15}$/.test(text) ? Number(text) : 0
  if (botId >= botIdMin && botId <= botIdMax) return botId
  throw refusal('bot id', `a whole number from ${botIdMin} to ${botIdMax}`, text)
}

function idParam(name: string, text: string): number {
  if (/^[1-9]\d{0,9}$/.test(text)) return Number(text)
  throw refusal(name, 'a whole number', text)
}
