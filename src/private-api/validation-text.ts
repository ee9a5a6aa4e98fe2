/**
 * Says why a body or a query does not fit its schema, in the form of all other errors: `username: expected ..., got ...`.
 * What is expected is derived from the schema. A pattern is no text for people, so the description of a text that has a
 * pattern says what is expected, as the end of that sentence. Pure.
 */
import type { FastifyError } from 'fastify'
import { unreachable } from '../kit/errors.ts'
import { onlyFields, shownValue } from '../api/update-options.ts'

interface NullSchema {
  readonly type: 'null'
}

/** What is used of a schema. */
interface Schema {
  readonly type?: 'integer' | 'boolean' | 'array' | 'string' | 'object'
  readonly description?: string
  readonly enum?: readonly string[]
  readonly minimum?: number
  readonly maximum?: number
  readonly minItems?: number
  readonly maxItems?: number
  readonly maxLength?: number
  readonly pattern?: string
  readonly items?: Schema
  readonly anyOf?: readonly (Schema | NullSchema)[]
  readonly properties?: Readonly<Record<string, Schema>>
}

type Problem = NonNullable<FastifyError['validation']>[number]

/** Ajv tells these two with `verbose`. */
interface Found {
  readonly parentSchema?: Schema
  readonly data?: unknown
}

/**
 * Returns the detail of the BAD_REQUEST.
 *
 * @param problems - what Ajv found; of a choice between schemas, those of the first one come first.
 * @param place - what was checked: `body` or `querystring`.
 */
export function validationText(
  [problem]: readonly (Problem & Found)[],
  place: string | undefined,
): string {
  if (problem === undefined) return `${place}: expected another value`
  const { instancePath, keyword, params, parentSchema = {}, data } = problem
  const { missingProperty, additionalProperty } = params
  const path = instancePath.slice(1).split('/')
  if (typeof missingProperty === 'string') {
    const field = [...path, missingProperty].filter((each) => each !== '').join('.')
    return `${field}: expected ${expectedBy(parentSchema.properties?.[missingProperty] ?? {})}, got none`
  }
  if (keyword === 'additionalProperties') {
    return onlyFields(String(additionalProperty), Object.keys(parentSchema.properties ?? {}))
  }
  const field = path.join('.') || (place === 'body' ? 'body' : 'query')
  return `${field}: expected ${expectedBy(parentSchema)}, got ${shownValue(data)}`
}

/** Of a choice, each of its forms. */
function expectedBy(schema: Schema): string {
  const forms = schema.anyOf ?? [schema]
  return forms.map((form) => (form.type === 'null' ? 'null' : expectedByForm(form))).join(' or ')
}

function expectedByForm(schema: Schema): string {
  const { type, minimum, maximum, minItems, maxItems } = schema
  if (schema.enum !== undefined) return `one of ${schema.enum.join(', ')}`
  switch (type) {
    case 'integer':
      return `a whole number from ${minimum} to ${maximum}`
    case 'boolean':
      return 'true or false'
    case 'array':
      return `a list of ${minItems} to ${maxItems} different values, each ${expectedBy(schema.items ?? {})}`
    case 'string':
      return textBy(schema)
    case 'object':
    case undefined:
      return 'a JSON object'
    default:
      return unreachable(type)
  }
}

function textBy({ description = 'a string', maxLength, pattern }: Schema): string {
  const isSaid = pattern !== undefined || maxLength === undefined
  return isSaid ? description : `a string of at most ${maxLength} characters`
}
