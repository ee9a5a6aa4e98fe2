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
import { incompleteFields } from '../output/print-result.ts'
import type { View } from '../output/view.ts'
import { fieldCell, fieldOf, fieldPairs, listLines, type ShownList } from './cells.ts'

/**
 * Returns the lines.
 *
 * @param value - the result, or what a command has made of it
 * @param input - what the call was made with
 */
export function resultLines(
  { done, columns, none, result }: Operation,
  value: object,
  view: View,
  input: object = {},
): readonly string[] {
  const schema = result?.() ?? Type.Unknown()
  if (done !== undefined) return [filled(done, schema, { ...input, ...value })]
  const list = columns === undefined ? undefined : listIn(schema)
  const items: readonly object[] = Object(value)[list?.name ?? ''] ?? []
  const lines =
    list === undefined || columns === undefined
      ? []
      : shownList({ item: list.item, items, columns }, view, none)
  if (view.form === 'csv') return lines
  const others = Object.entries(value).filter(
    ([name, each]) =>
      name !== list?.name && !incompleteFields.has(name) && (list === undefined || each !== null),
  )
  const { nowMs } = view
  return [...lines, ...view.pairs(fieldPairs(schema, Object.fromEntries(others), { nowMs }))]
}

/** Returns the lines of one thing below the sentence that says what matters of it. */
export function underSentence(
  sentence: string,
  view: View,
  lines: readonly string[],
): readonly string[] {
  return [...view.texts([sentence]), '', ...lines]
}

/** Returns a list as lines, or what is said of an empty one. */
export function shownList(list: ShownList, view: View, none = 'none'): readonly string[] {
  return list.items.length === 0 && view.form !== 'csv' ? [none] : listLines(list, view)
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
