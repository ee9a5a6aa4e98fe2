/**
 * Whether a value has the form of a schema: its types and the fields that are always there. A check of the whole schema would
 * refuse what a later server sends, because later versions add fields, words and types of events (docs/know/promise.md). A field
 * that a later version adds to a result is optional in its row, because earlier servers do not send it. Pure.
 */
import { type TObject, type TSchema, Type } from 'typebox'

export function fitsSchema(schema: TSchema, value: unknown): boolean {
  if (Type.IsUnion(schema)) return schema.anyOf.some((each) => fitsSchema(each, value))
  if (Type.IsArray(schema)) {
    return Array.isArray(value) && value.every((item) => fitsSchema(schema.items, item))
  }
  if (Type.IsObject(schema)) return objectFits(schema, value)
  if (Type.IsNull(schema)) return value === null
  if (Type.IsInteger(schema)) return Number.isInteger(value)
  if (Type.IsNumber(schema)) return typeof value === 'number'
  if (Type.IsBoolean(schema)) return typeof value === 'boolean'
  if (Type.IsLiteral(schema)) return typeof value === typeof schema.const
  return Type.IsString(schema) || Type.IsEnum(schema) ? typeof value === 'string' : true
}

function objectFits({ properties }: TObject, value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  const fields = new Map<string, unknown>(Object.entries(value))
  return Object.entries(properties).every(([name, schema]) =>
    fields.has(name) ? fitsSchema(schema, fields.get(name)) : Type.IsOptional(schema),
  )
}
