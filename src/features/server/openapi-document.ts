/**
 * Builds the OpenAPI 3.1 document of the private API from the table of operations. A schema with an `$id` becomes a component
 * of that name, and `$ref` takes its place.
 */
import { type TObject, type TSchema, Type } from 'typebox'
import { type ErrorCode, errorKinds } from '../../kit/errors.ts'
import { commonErrors, errorSchema, openErrors, ownErrors } from '../../api/error-schema.ts'
import * as is from '../../api/words.ts'
import {
  type Content,
  json,
  type Operation,
  operationTags,
  querySchema,
} from '../../api/operation.ts'
import { type JsonObject, OpenApiComponents } from './openapi-components.ts'

/** What the parameters mean that several calls have. A description in a route's own schema has precedence. */
const parameterTexts: Readonly<Record<string, string>> = {
  test: 'Whether the call is about the /test/ queue of the bot.',
  after: 'The list starts above this id.',
  limit: 'The list has at most this many entries.',
}
/** The parameters in paths. */
const pathSchemas: Readonly<Record<string, () => TSchema>> = {
  id: () => ({ ...is.botId(), description: 'The id of the bot.' }),
  update_id: () => is.updateId('The id of the update.'),
  job_id: () => ({ ...is.jobId(), description: 'The id of the replay.' }),
  link_id: () => is.text('The id of the link.'),
  key_id: () => is.text('The id of the key.'),
  shard: () => ({ ...is.shard(), description: 'The number of the shard.' }),
}

/**
 * Builds the document.
 *
 * @param operations - The operations, in the order of the document.
 * @returns The document, as JSON.
 */
export function openApiDocument(operations: readonly Operation[]): JsonObject {
  const components = new OpenApiComponents()
  const paths: Record<string, Record<string, JsonObject>> = {}
  for (const operation of operations) {
    const path = operation.path.replaceAll(/:(\w+)/g, '{$1}')
    const methods = (paths[path] ??= {})
    methods[operation.method.toLowerCase()] = operationObject(operation, components)
  }
  return {
    openapi: '3.1.1',
    info: {
      title: 'Postbote: the private API',
      version: '1',
      description:
        'Producers push updates through this API, and operators manage bots. A later version may add fields to a response; ignore those that you do not know. docs/use/api.md has examples, docs/use/protocol.md the rules.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: 'http://127.0.0.1:8082', description: 'The default address' }],
    security: [{ adminKey: [] }],
    tags: Object.entries(operationTags).map(([name, description]) => ({ name, description })),
    paths,
    components: components.object(),
  }
}

function operationObject(operation: Operation, components: OpenApiComponents): JsonObject {
  const { id, tag, summary, description, path } = operation
  const parameters = [
    ...pathParameters(path, components),
    ...parametersIn('query', querySchema(operation), components),
    ...parametersIn('header', operation.headers?.(), components),
  ]
  return {
    operationId: id,
    tags: [tag],
    summary,
    description,
    security: securityOf(operation),
    'x-portal': operation.portal,
    parameters: parameters.length > 0 ? parameters : undefined,
    requestBody: bodyObject(operation, components),
    responses: responsesObject(operation, components),
  }
}

/** The names of scopes are the roles of OpenAPI 3.1. */
function securityOf({ scope, needsKey }: Operation): JsonObject[] {
  if (scope === 'open') return []
  const roles = scope === 'any' ? [] : [scope]
  const session = needsKey === true ? [] : [{ session: roles }]
  return [{ adminKey: [] }, { key: roles }, ...session]
}

function pathParameters(path: string, components: OpenApiComponents): JsonObject[] {
  return [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => {
    const schema = pathSchemas[name]?.()
    if (schema === undefined) throw new Error(`no schema describes the path parameter ${name}`)
    return parameter('path', name, { isRequired: true, schema: components.published(schema) })
  })
}

/** Fastify fills in defaults before it checks what is required, so a field with a default is not required of a client. */
function parametersIn(
  place: 'query' | 'header',
  fields: TObject | undefined,
  components: OpenApiComponents,
): JsonObject[] {
  const required: readonly string[] = fields?.required ?? []
  return Object.entries(fields?.properties ?? {}).map(([name, field]) => {
    const schema = components.published(field)
    const isRequired = required.includes(name) && schema['default'] === undefined
    return parameter(place, name, { isRequired, schema })
  })
}

function parameter(
  place: string,
  name: string,
  { isRequired, schema }: { readonly isRequired: boolean; readonly schema: JsonObject },
): JsonObject {
  const { description = parameterTexts[name] ?? '', ...rest } = schema
  return { name, in: place, required: isRequired, description, schema: rest }
}

function bodyObject(
  { body, bodyContent }: Operation,
  components: OpenApiComponents,
): JsonObject | undefined {
  if (bodyContent !== undefined)
    return { required: true, content: components.content(bodyContent()) }
  if (body === undefined) return undefined
  const schema = body()
  const choices = Type.IsUnion(schema) ? schema.anyOf : [schema]
  // No body is read as null.
  const given = choices.filter((choice) => !Type.IsNull(choice))
  const [first = {}, ...more] = given.map((choice) => components.published(choice))
  return {
    required: given.length === choices.length,
    content: {
      'application/json': { schema: more.length > 0 ? { anyOf: [first, ...more] } : first },
    },
  }
}

/** The response itself, or a reference to it. */
interface Response {
  readonly $ref?: string
  readonly description?: string
  readonly headers?: JsonObject | undefined
  readonly content?: Readonly<Record<string, JsonObject>> | undefined
}

function responsesObject(
  operation: Operation,
  components: OpenApiComponents,
): Readonly<Record<string, Response>> {
  const { method, scope, result } = operation
  const errors = ownErrors(operation)
  const isOpen = scope === 'open'
  const results = operation.results?.() ?? (result === undefined ? {} : { 200: json(result()) })
  const shared: readonly ErrorCode[] = isOpen ? openErrors : commonErrors
  const byStatus = codesByStatus([...shared, ...errors])
  const responses: Record<string, Response> = {}
  for (const [status, codes] of byStatus) {
    const isShared = codes.every((code) => !errors.includes(code))
    const response = errorResponse(status, codes, components)
    if (method === 'HEAD') responses[status] = { ...response, content: undefined }
    else if (isShared && !isOpen)
      responses[status] = components.response(`Error${status}`, response)
    else responses[status] = response
  }
  for (const [status, content] of Object.entries(results)) {
    const response = resultResponse(content, components)
    responses[status] = joined(response, responses[status])
  }
  return responses
}

/** Statuses in ascending order, each with its codes. */
function codesByStatus(codes: readonly ErrorCode[]): [number, ErrorCode[]][] {
  const groups = new Map<number, ErrorCode[]>()
  for (const code of new Set(codes)) {
    const { status } = errorKinds[code]
    groups.set(status, [...(groups.get(status) ?? []), code])
  }
  return [...groups].toSorted(([a], [b]) => a - b)
}

function errorResponse(
  status: number,
  codes: readonly ErrorCode[],
  components: OpenApiComponents,
): Response {
  const texts = codes.map(
    (code) => `\`${code}\`: ${errorKinds[code].description.replace('%s', '…')}`,
  )
  // A keyword beside $ref also applies: the error has one of these codes.
  const properties = { error: { properties: { code: { enum: codes } } } }
  const schema = { ...components.published(errorSchema()), properties }
  const seconds = { description: 'Seconds until the call may succeed.', ...retryAfter }
  return {
    description: texts.join('\n\n'),
    headers: retryStatuses.has(status) ? { 'Retry-After': seconds } : undefined,
    content: { 'application/json': { schema } },
  }
}

/** All errors with these say when to call again. */
const retryStatuses: ReadonlySet<number> = new Set([429, 503, 507])
const retryAfter = { required: true, schema: { type: 'integer', minimum: 1 } }

function resultResponse(content: Content, components: OpenApiComponents): Response {
  const [first] = Object.values(content)
  if (first === undefined) return { description: 'A response without a body.' }
  const { schema } = first
  const description =
    'description' in schema ? String(schema.description) : 'The call has succeeded.'
  return { description, content: components.content(content) }
}

/** Joins a result with the errors that have the same status, if there are any. Such a result is JSON, too: /readyz. */
function joined(result: Response, errors: Response | undefined): Response {
  if (errors === undefined) return result
  const type = 'application/json'
  const anyOf = [result, errors].map(({ content }) => content?.[type]?.['schema'])
  return {
    ...errors,
    description: `${result.description}\n\n${errors.description}`,
    content: errors.content && { [type]: { schema: { anyOf } } },
  }
}
