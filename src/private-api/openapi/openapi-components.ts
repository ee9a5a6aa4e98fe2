/**
 * The named parts of an OpenAPI document. A schema with an `$id` becomes a component of that name, and `$ref` takes its
 * place wherever it occurs. One name cannot stand for two things.
 */
import type { Content } from '../../operations/operation.ts'
import { sessionCookieName } from '../access/session-cookie.ts'

/** A value of JSON. */
export type Json = null | boolean | number | string | Json[] | JsonObject
export interface JsonObject {
  [name: string]: Json
}

/** Collects the schemas and responses that have names. */
export class OpenApiComponents {
  readonly #schemas = new Map<string, JsonObject>()
  readonly #responses = new Map<string, JsonObject>()

  /**
   * Adds the named schemas within a schema.
   *
   * @param schema - A schema of typebox; undefined is an empty one.
   * @returns The schema as JSON, with references in the places of named schemas.
   * @throws Error if a name already stands for another schema.
   */
  published(schema: unknown): Json {
    return this.#withRefs(jsonOf(schema))
  }

  /** Returns the content of a body as JSON, in which named schemas are references. */
  content(content: Content): JsonObject {
    const published = Object.entries(content).map(([type, mediaType]) => {
      const lines = mediaType['x-ndjson-lines']
      const shown: JsonObject = { schema: this.published(mediaType.schema) }
      if (mediaType.example !== undefined) shown['example'] = mediaType.example
      if (lines !== undefined) shown['x-ndjson-lines'] = lines.map((line) => this.published(line))
      return [type, shown] as const
    })
    return Object.fromEntries(published)
  }

  /** Names a response and returns the reference to it. */
  response(name: string, response: JsonObject): JsonObject {
    return { $ref: `#/components/responses/${add(this.#responses, name, response)}` }
  }

  /** Returns the `components` of the document: what was added so far, and what authorizes a call. */
  object(): JsonObject {
    return {
      securitySchemes: {
        adminKey: { type: 'http', scheme: 'bearer', description: 'The key in data/admin.key.' },
        key: {
          type: 'http',
          scheme: 'bearer',
          description:
            'A key that createKey has made. The roles are the scopes of which it needs one; the scope `all` includes the others.',
        },
        session: {
          type: 'apiKey',
          in: 'cookie',
          name: sessionCookieName,
          description:
            'The cookie of a browser (beginSession). A call that may change something then needs the header Postbote-Dashboard.',
        },
      },
      responses: Object.fromEntries(this.#responses),
      schemas: Object.fromEntries(this.#schemas),
    }
  }

  #withRefs(node: Json): Json {
    if (Array.isArray(node)) return node.map((each) => this.#withRefs(each))
    if (typeof node !== 'object' || node === null) return node
    const { $id, ...rest } = node
    const fields = Object.entries(rest).map(([name, value]) => [name, this.#withRefs(value)])
    const schema = withFormat(Object.fromEntries(fields))
    if (typeof $id !== 'string') return schema
    return { $ref: `#/components/schemas/${add(this.#schemas, $id, schema)}` }
  }
}

/** Returns the name. It may be added again, but not for something else. */
function add(named: Map<string, JsonObject>, name: string, added: JsonObject): string {
  const before = named.get(name) ?? added
  if (JSON.stringify(before) !== JSON.stringify(added)) throw new Error(`two components ${name}`)
  named.set(name, added)
  return name
}

/** Returns an empty object for anything that is no object. */
export function asObject(json: Json): JsonObject {
  return typeof json === 'object' && json !== null && !Array.isArray(json) ? json : {}
}

/** Returns a schema of typebox as plain JSON; undefined is an empty schema. */
export function jsonOf(schema: unknown): Json {
  const copy: Json = JSON.parse(JSON.stringify(schema ?? {}))
  return copy
}

/** Ids and points in time do not fit into the 32 bits that generated clients use by default. */
export function withFormat(schema: JsonObject): JsonObject {
  const { type, maximum } = schema
  const isWide = type === 'integer' && typeof maximum === 'number' && maximum >= 2 ** 31
  return isWide ? { ...schema, format: 'int64' } : schema
}
