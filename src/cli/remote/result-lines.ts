/**
 * What people read of the result of a call, as its row says:
 *
 *     done       that text, filled in
 *     columns    the list in the result as a table, or `none`; then its other fields, each on a line
 *     neither    a line for each field
 *
 * Fields that a later server adds are shown, too, but not those that `tellIncomplete` tells.
 */
import { type TObject, type TSchema, Type } from 'typebox'
import type { Operation } from '../../api/operation.ts'
import { incompleteFields, tableLines } from '../output/print-result.ts'
import { textTable } from '../output/text-table.ts'
import { fieldCell, fieldOf, fieldTable, itemTable } from './cells.ts'

/**
 * Returns the lines.
 *
 * @param value - the result, or what a command has made of it
 * @param input - what the call was made with
 */
export function resultLines(
  { done, columns, none, result }: Operation,
  value: object,
  input: object = {},
): readonly string[] {
  const schema = result?.() ?? Type.Unknown()
  if (done !== undefined) return [filled(done, schema, { ...input, ...value })]
  const fields = Object.entries(value).filter(([name]) => !incompleteFields.has(name))
  if (columns === undefined) return textTable(fieldTable(schema, Object.fromEntries(fields)))
  const list = listIn(schema)
  const items: readonly Readonly<Record<string, unknown>>[] = Object(value)[list?.name ?? '']
  const table =
    list === undefined || items.length === 0
      ? [none ?? 'none']
      : tableLines(itemTable(list.item, items, columns))
  const others = fields.filter(([name, each]) => name !== list?.name && each !== null)
  return [
    ...table,
    ...others.map(([name, each]) => `${name} ${fieldCell(fieldOf(schema, name), each)}`),
  ]
}

function filled(text: string, schema: TSchema, values: object): string {
  const byName = new Map<string, unknown>(Object.entries(values))
  return text.replaceAll(/\{([a-z_]{1,40})\}/g, (_, name: string) =>
    fieldCell(fieldOf(schema, name), byName.get(name)),
  )
}

/** Returns the name of the list of objects in a result, and the schema of its items. */
export function listIn(
  schema: TSchema,
): { readonly name: string; readonly item: TObject } | undefined {
  const properties = Type.IsObject(schema) ? Object.entries(schema.properties) : []
  for (const [name, field] of properties) {
    if (Type.IsArray(field) && Type.IsObject(field.items)) return { name, item: field.items }
  }
  return undefined
}
