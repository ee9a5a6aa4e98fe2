/**
 * Checks that a response of the private API is one that docs/reference/openapi.json describes: its status, its headers, its media
 * type, and every field of its body. `Server.admin` checks all responses that tests get through it, and test/fuzz those to
 * its requests.
 *
 * The document lets a later version add fields to a response. Here, a field that it does not name is an error.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { type AnySchemaObject, Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'

interface MediaType {
  readonly schema: AnySchemaObject
  readonly 'x-ndjson-lines'?: readonly AnySchemaObject[]
}

interface ResponseObject {
  readonly headers?: Readonly<Record<string, { readonly required: boolean }>>
  readonly content?: Readonly<Record<string, MediaType>>
}

interface OperationObject {
  readonly responses: Readonly<Record<string, ResponseObject | { readonly $ref: string }>>
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, OperationObject>>>>
  readonly components: {
    readonly responses: Readonly<Record<string, ResponseObject>>
    readonly schemas: Readonly<Record<string, AnySchemaObject>>
  }
}

export interface DocumentedCall {
  readonly method: string
  /** With or without a query. */
  readonly path: string
}

export interface ReceivedResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
}

const file = new URL('../../../../docs/reference/openapi.json', import.meta.url)
let responses: DocumentedResponses | undefined

/** Throws an AssertionError that says what the document does not describe. */
export function assertDocumented(call: DocumentedCall, response: ReceivedResponse): void {
  responses ??= new DocumentedResponses(JSON.parse(readFileSync(file, 'utf8')))
  responses.check(call, response)
}

/** Compares responses from now on with the document of a server with other types of updates. */
export function documentIs(document: Document): void {
  responses = new DocumentedResponses(document)
}

/** The responses of one document. Their schemas are compiled when they are first needed. */
export class DocumentedResponses {
  readonly #document: Document
  /** That the schemas are correct is tested elsewhere, and to check it takes every process of a test 60 ms. */
  readonly #ajv = new Ajv2020({
    strictTypes: false,
    formats: { int64: true },
    meta: false,
    validateSchema: false,
  })
  readonly #templates: readonly { readonly path: string; readonly pattern: RegExp }[]
  readonly #compiled = new Map<string, ValidateFunction>()

  constructor(document: Document) {
    this.#document = document
    this.#ajv.addSchema({ $id: 'components', $defs: closed(document.components.schemas) })
    // `/replay` comes before `/{update_id}`.
    const paths = Object.keys(document.paths).toSorted((a, b) => holes(a) - holes(b))
    this.#templates = paths.map((path) => ({ path, pattern: patternOf(path) }))
  }

  check(call: DocumentedCall, { status, headers, text }: ReceivedResponse): void {
    const type = String(headers['content-type'] ?? '').split(';')[0] ?? ''
    // A load balancer of the test has refused the call before it reached a server.
    if (type === 'text/html') return
    const what = `${call.method} ${call.path}: ${status} ${type} ${text.slice(0, 500)}`
    const response = this.#responseOf(call, status)
    assert(response !== undefined, `docs/reference/openapi.json has no such status: ${what}`)
    const { content, headers: described = {} } = response
    for (const [name, { required }] of Object.entries(described)) {
      const isThere = headers[name.toLowerCase()] !== undefined
      assert(isThere || !required, `docs/reference/openapi.json has the header ${name}: ${what}`)
    }
    if (content === undefined || call.method === 'HEAD') {
      assert.equal(text, '', `docs/reference/openapi.json has no body: ${what}`)
      return
    }
    const mediaType = content[type]
    assert(mediaType !== undefined, `docs/reference/openapi.json has no such media type: ${what}`)
    for (const { schema, value } of partsOf(mediaType, { type, text })) {
      const validate = this.#validatorOf(schema)
      assert(validate(value), `${this.#ajv.errorsText(validate.errors)}: ${what}`)
    }
  }

  /** A call that no operation describes can get the errors of all calls, such as NOT_FOUND. */
  #responseOf({ method, path }: DocumentedCall, status: number): ResponseObject | undefined {
    const { paths, components } = this.#document
    const bare = path.split('?')[0] ?? ''
    const template = this.#templates.find(({ pattern }) => pattern.test(bare))
    const operation = paths[template?.path ?? '']?.[method.toLowerCase()]
    if (operation === undefined) return components.responses[`Error${status}`]
    const response = operation.responses[status]
    if (response === undefined || !('$ref' in response)) return response
    return components.responses[response.$ref.replace('#/components/responses/', '')]
  }

  #validatorOf(schema: AnySchemaObject): ValidateFunction {
    const text = JSON.stringify(closed(schema))
    const validate = this.#compiled.get(text) ?? this.#ajv.compile(JSON.parse(text))
    this.#compiled.set(text, validate)
    return validate
  }
}

/** Each line of NDJSON is a value of its own. */
function* partsOf(
  mediaType: MediaType,
  { type, text }: { readonly type: string; readonly text: string },
): Generator<{ schema: AnySchemaObject; value: unknown }> {
  const { schema, 'x-ndjson-lines': lines } = mediaType
  if (lines !== undefined) {
    const values = text.split('\n').filter((line) => line !== '')
    for (const [at, line] of values.entries()) {
      yield { schema: lines[at % lines.length] ?? {}, value: JSON.parse(line) }
    }
  } else if (type === 'application/json') yield { schema, value: JSON.parse(text) }
  else yield { schema, value: text }
}

/** Returns a copy in which objects have no other fields than those that are named, and references lead to `$defs`. */
function closed<Schema>(schema: Schema): Schema {
  return JSON.parse(JSON.stringify(schema), (_key, value) => {
    if (typeof value !== 'object' || value === null) return value
    const { $ref, type, properties } = value
    if (typeof $ref === 'string') {
      return { ...value, $ref: $ref.replace('#/components/schemas/', 'components#/$defs/') }
    }
    const isOpen = type === 'object' && Object.keys(properties ?? {}).length > 0
    return isOpen ? { additionalProperties: false, ...value } : value
  })
}

function holes(path: string): number {
  return path.split('{').length
}

function patternOf(path: string): RegExp {
  return new RegExp(`^${path.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]+')}$`)
}
