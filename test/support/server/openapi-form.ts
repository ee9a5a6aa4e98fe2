/**
 * The form of docs/reference/openapi.json: the part of OpenAPI 3.1 that the generator uses, closed, so that a misspelled or
 * misplaced field is an error. The schemas in the document are checked against the meta-schema of JSON Schema 2020-12.
 */
import { type TProperties, type TSchema, Type } from 'typebox'
import { scopes } from '../../../src/kit/rights.ts'

const text = Type.String({ minLength: 1 })
const anySchema = Type.Unknown()

const mediaType = closed({
  schema: anySchema,
  example: Type.Optional(text),
  'x-ndjson-lines': Type.Optional(Type.Array(anySchema, { minItems: 1 })),
})
const content = named('^[a-z]+/[a-z-]+$', mediaType)
const header = closed({ description: text, required: Type.Boolean(), schema: anySchema })
const response = closed({
  description: text,
  headers: Type.Optional(named('^[A-Za-z-]+$', header)),
  content: Type.Optional(content),
})
const reference = closed({ $ref: Type.String({ pattern: '^#/components/responses/\\w+$' }) })
const parameter = closed({
  name: text,
  in: Type.Enum(['path', 'query', 'header']),
  required: Type.Boolean(),
  description: text,
  schema: anySchema,
})
/** The name of one scheme. A key has roles, which are its scopes, and so has its session. */
const roles = Type.Array(Type.Enum([...scopes], { type: 'string' }), { maxItems: 1 })
const requirement = Type.Union([
  closed({ adminKey: Type.Array(Type.Never()) }),
  closed({ key: roles }),
  closed({ session: roles }),
])
const operation = closed({
  operationId: Type.String({ pattern: '^[a-z][A-Za-z]+$' }),
  tags: Type.Array(text, { minItems: 1, maxItems: 1 }),
  summary: text,
  description: Type.Optional(text),
  security: Type.Optional(Type.Array(requirement)),
  'x-portal': Type.Optional(text),
  parameters: Type.Optional(Type.Array(parameter)),
  requestBody: Type.Optional(closed({ required: Type.Boolean(), content })),
  responses: named('^[1-5]\\d\\d$', Type.Union([response, reference])),
})
const verbs = ['get', 'post', 'put', 'patch', 'delete', 'head'] as const
const pathItem = closed(Object.fromEntries(verbs.map((verb) => [verb, Type.Optional(operation)])))

/** The schema of the document. */
export const openApiForm = closed({
  openapi: Type.String({ pattern: '^3\\.1\\.\\d+$' }),
  info: closed({
    title: text,
    version: text,
    description: text,
    license: closed({ name: text, identifier: text }),
  }),
  servers: Type.Array(closed({ url: text, description: text })),
  security: Type.Array(requirement, { minItems: 1 }),
  tags: Type.Array(closed({ name: text, description: text })),
  paths: named('^/[a-z]', pathItem),
  components: closed({
    securitySchemes: closed({
      adminKey: closed({
        type: Type.Literal('http'),
        scheme: Type.Literal('bearer'),
        description: text,
      }),
      key: closed({
        type: Type.Literal('http'),
        scheme: Type.Literal('bearer'),
        description: text,
      }),
      session: closed({
        type: Type.Literal('apiKey'),
        in: Type.Literal('cookie'),
        name: text,
        description: text,
      }),
    }),
    responses: named('^\\w+$', response),
    schemas: named('^\\w+$', anySchema),
  }),
})

function closed(properties: TProperties): TSchema {
  return Type.Object(properties, { additionalProperties: false })
}

/** An object whose fields have names of this pattern. */
function named(pattern: string, schema: TSchema): TSchema {
  return Type.Unsafe<object>({
    type: 'object',
    patternProperties: { [pattern]: schema },
    additionalProperties: false,
    minProperties: 1,
  })
}
