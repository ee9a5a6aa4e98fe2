/**
 * The named parts of an OpenAPI document. A schema with an `$id` becomes a component of that name, and `$ref` takes its
 * place wherever it occurs. One name cannot stand for two things.
 */
import type { TSchema } from 'typebox'
import type { Content } from '../../api/operation.ts'
import { sessionCookieName } from '../../access/session-cookie.ts'

/** An object of JSON. */
export type JsonObject = Readonly<Record<string, unknown>>

/** Collects the schemas and responses that have names. */
export class OpenApiComponents {
  readonly #schemas = new Map<string, object>()
  readonly #responses = new Map<string, object>()

  /**
   * Adds the named schemas within a schema.
   *
   * @returns The schema as JSON, with references in the places of named schemas.
   * @throws Error if a name already stands for another schema.
   */
  published(schema: TSchema): JsonObject {
    return JSON.parse(JSON.stringify(schema), (_name, node: unknown) =>
      isObject(node) ? this.#withRef(node) : node,
    )
  }

  /** Returns the content of a body as JSON, in which named schemas are references. */
  content(content: Content): Readonly<Record<string, JsonObject>> {
    const published = Object.entries(content).map(([type, { schema, ...more }]) => {
      const lines = more['x-ndjson-lines']?.map((line) => this.published(line))
      const shown = lines === undefined ? more : { ...more, 'x-ndjson-lines': lines }
      return [type, { schema: this.published(schema), ...shown }]
    })
    return Object.fromEntries(published)
  }

  /** Names a response and returns the reference to it. */
  response(name: string, response: object): { readonly $ref: string } {
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

  /** The schemas within this one are references already. */
  #withRef({ $id, ...node }: JsonObject): JsonObject {
    const schema = withFormat(node)
    if (typeof $id !== 'string') return schema
    return { $ref: `#/components/schemas/${add(this.#schemas, $id, schema)}` }
  }
}

/** Returns the name. It may be added again, but not for something else. */
function add(named: Map<string, object>, name: string, added: object): string {
  const before = named.get(name) ?? added
  if (JSON.stringify(before) !== JSON.stringify(added)) throw new Error(`two components ${name}`)
  named.set(name, added)
  return name
}

function isObject(node: unknown): node is JsonObject {
  return typeof node === 'object' && node !== null && !Array.isArray(node)
}

/** Ids and points in time do not fit into the 32 bits that generated clients use by default. */
function withFormat(schema: JsonObject): JsonObject {
  const { type, maximum } = schema
  const isWide = type === 'integer' && typeof maximum === 'number' && maximum >= 2 ** 31
  return isWide ? { ...schema, format: 'int64' } : schema
}
