/** How values of the private API are shown in tables, as the schemas of their fields say (`shown` of api/words.ts). Pure. */
import { type TSchema, Type } from 'typebox'
import { nullWordOf, type ShownAs, shownAsOf } from '../../api/words.ts'
import { utcText } from '../../kit/clock.ts'
import { kib, mib } from '../../kit/limits.ts'
import type { TableRows } from '../output/text-table.ts'

/** Returns a value as a cell: `-` for none, and yes or no. */
export function cell(value: unknown): string {
  if (value === undefined || value === null || value === '') return '-'
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** Returns the value of a field as a cell: a list of words as these, an object as what it has by its names. */
export function fieldCell(schema: TSchema, value: unknown): string {
  if (typeof value === 'number') {
    const as = asOf(schema)
    return as === undefined ? `${value}` : numberTexts[as](value)
  }
  if (value === null) return nullWordOf(schema) ?? cell(value)
  if (typeof value !== 'object') return cell(value)
  if (Array.isArray(value)) {
    if (value.length === 0) return 'none'
    return value.every((each) => typeof each !== 'object') ? value.map(cell).join(',') : cell(value)
  }
  const fields = Object.entries(value)
  return cell(
    fields.map(([name, each]) => `${name} ${fieldCell(fieldOf(schema, name), each)}`).join(', '),
  )
}

const numberTexts: Readonly<Record<ShownAs, (value: number) => string>> = {
  time: (value) => utcText(value * 1_000),
  age: ageText,
  bytes: bytesText,
  ms: (value) => `${value} ms`,
  rate: String,
}

/** Returns a duration in seconds for people: `42 s`, `3 min`, `5 h` or `2 d`. */
function ageText(ageS: number): string {
  if (ageS < 120) return `${Math.round(ageS)} s`
  if (ageS < 7_200) return `${Math.floor(ageS / 60)} min`
  return ageS < 172_800 ? `${Math.floor(ageS / 3_600)} h` : `${Math.floor(ageS / 86_400)} d`
}

/** Returns a number of bytes for people, such as `12.3 MiB`. */
export function bytesText(bytes: number): string {
  if (bytes < kib) return `${bytes} B`
  if (bytes < mib) return `${(bytes / kib).toFixed(1)} KiB`
  const gib = 1_024 * mib
  return bytes < gib ? `${(bytes / mib).toFixed(1)} MiB` : `${(bytes / gib).toFixed(1)} GiB`
}

/**
 * Returns a table with a line for each item and a column for each of these fields. A field that may be absent has no column
 * if no item has it.
 *
 * @param item - the schema of the items
 * @param others - whether the other fields of the items follow
 */
export function itemTable(
  item: TSchema,
  items: readonly object[],
  fields: readonly string[],
  others: 'others' | 'only these' = 'only these',
): TableRows {
  const rows = items.map((each) => new Map<string, unknown>(Object.entries(each)))
  const more = others === 'others' ? rows.flatMap((row) => [...row.keys()]) : []
  const present = [...new Set<string>([...fields, ...more])].filter(
    (field) => !Type.IsOptional(fieldOf(item, field)) || rows.some((row) => row.has(field)),
  )
  return {
    head: present.map((field) => headOf(item, field)),
    rows: rows.map((row) =>
      present.map((field) => columnCell(fieldOf(item, field), row.get(field))),
    ),
  }
}

/** The head of a column says whether it has milliseconds. */
function columnCell(schema: TSchema, value: unknown): string {
  return asOf(schema) === 'ms' ? cell(value) : fieldCell(schema, value)
}

/** Names that are shorter in a head, where the column says the rest. */
const heads: ReadonlyMap<string, string> = new Map([
  ['duration_ms', 'ms'],
  ['oldest_age', 'oldest'],
  ['ordering_key', 'key'],
])

function headOf(item: TSchema, field: string): string {
  return asOf(fieldOf(item, field)) === 'rate'
    ? field.replace(/_per_second$/, '/s')
    : (heads.get(field) ?? field)
}

/** Returns a table with a line for each field of one item. An object of objects has a line for each of these. */
export function fieldTable(schema: TSchema, fields: object): TableRows {
  return { head: ['field', 'value'], rows: fieldRows(schema, fields, '') }
}

function fieldRows(schema: TSchema, fields: object, before: string): readonly string[][] {
  return Object.entries(fields).flatMap(([field, value]: [string, unknown]) => {
    const inner = fieldOf(schema, field)
    const name = `${before}${field}`
    return isNested(value) ? fieldRows(inner, value, `${name} `) : [[name, fieldCell(inner, value)]]
  })
}

/** Returns whether a value is an object of objects only. */
function isNested(value: unknown): value is object {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  const inner: readonly unknown[] = Object.values(value)
  return (
    inner.length > 0 &&
    inner.every((each) => typeof each === 'object' && each !== null && !Array.isArray(each))
  )
}

/** Returns the schema of a field; one that says nothing, if a later server has added the field. */
export function fieldOf(schema: TSchema, field: string): TSchema {
  for (const each of choicesOf(schema)) {
    const found = Type.IsObject(each) ? each.properties[field] : undefined
    if (found !== undefined) return found
  }
  return Type.Unknown()
}

function asOf(schema: TSchema): ShownAs | undefined {
  return choicesOf(schema)
    .map((each) => shownAsOf(each))
    .find((as) => as !== undefined)
}

/** Returns what a value may be, such as a number or null. */
function choicesOf(schema: TSchema): readonly TSchema[] {
  return Type.IsUnion(schema) ? schema.anyOf : [schema]
}
