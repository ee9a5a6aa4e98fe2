/** How values of the private API are shown in tables and as CSV, as the schemas of their fields say (`shown` of api/words.ts). Pure. */
import { type TSchema, Type } from 'typebox'
import { nullWordOf, type ShownAs, shownAsOf } from '../../api/words.ts'
import { durationText } from '../../config/duration.ts'
import { unreachable } from '../../kit/errors.ts'
import { isoText, utcText } from '../../kit/clock.ts'
import { gib, kib, mib } from '../../kit/limits.ts'
import { type ColumnKind, emptyCell, harmless } from '../output/text-table.ts'
import type { View } from '../output/view.ts'

/** Returns a value as a cell: `-` for none, and yes or no. */
export function cell(value: unknown): string {
  if (value === undefined || value === null || value === '') return emptyCell
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/**
 * Returns the value of a field as a cell: a list of words as these, an object as what it has by its names.
 *
 * @param nowMs - for people at a terminal, who read ages and not what is null within an object; undefined for dates
 */
export function fieldCell(schema: TSchema, value: unknown, nowMs?: number): string {
  if (typeof value === 'number') {
    const as = asOf(schema)
    return as === undefined ? `${value}` : numberText(as, value, nowMs)
  }
  if (value === null) return nullWordOf(schema) ?? cell(value)
  if (typeof value !== 'object') return cell(value)
  if (Array.isArray(value)) {
    if (value.length === 0) return 'none'
    if (value.some((each) => typeof each === 'object')) return cell(value)
    return value.map((each) => fieldCell(itemOf(schema), each, nowMs)).join(',')
  }
  const fields = Object.entries(value).filter(
    ([name, each]) => nowMs === undefined || saysSomething(fieldOf(schema, name), each),
  )
  return cell(
    fields
      .map(
        ([name, each]) =>
          `${labelOf(fieldOf(schema, name), name)} ${fieldCell(fieldOf(schema, name), each, nowMs)}`,
      )
      .join(', '),
  )
}

/** Whether people learn something of a value: null may have a word, such as `all`. */
function saysSomething(schema: TSchema, value: unknown): boolean {
  return value !== undefined && (value !== null || (nullWordOf(schema) ?? emptyCell) !== emptyCell)
}

function numberText(as: ShownAs, value: number, nowMs: number | undefined): string {
  switch (as) {
    case 'time':
      return timeText(value, nowMs)
    case 'age':
      return ageText(value)
    case 'duration':
      return durationText(value)
    case 'bytes':
      return bytesText(value)
    case 'ms':
      return nowMs === undefined ? `${value} ms` : msText(value)
    case 'rate':
    case 'name':
    case 'reason':
      return `${value}`
    default:
      return unreachable(as)
  }
}

function timeText(timeS: number, nowMs: number | undefined): string {
  if (nowMs === undefined) return isoText(Math.round(timeS * 1_000))
  const agoS = nowMs / 1_000 - timeS
  if (Math.abs(agoS) < 1) return 'now'
  return agoS > 0 ? `${ageText(agoS)} ago` : `in ${ageText(-agoS)}`
}

/** Returns a duration in seconds for people: `42 s`, `3 min`, `5 h` or `2 d`. */
export function ageText(ageS: number): string {
  if (ageS < 120) return `${Math.round(ageS)} s`
  if (ageS < 7_200) return `${Math.floor(ageS / 60)} min`
  return ageS < 172_800 ? `${Math.floor(ageS / 3_600)} h` : `${Math.floor(ageS / 86_400)} d`
}

/** Returns milliseconds for people: `12.3 ms`, `4.2 s`, `3 min`. */
function msText(ms: number): string {
  if (ms < 1_000) return `${ms} ms`
  return ms < 60_000 ? `${(ms / 1_000).toFixed(1)} s` : ageText(ms / 1_000)
}

/** The value beside it has the unit. */
function labelOf(schema: TSchema, field: string): string {
  return asOf(schema) === 'ms' ? field.replace(/_ms$/, '') : field
}

/** Returns a number of bytes for people, such as `12.3 MiB`. */
export function bytesText(bytes: number): string {
  if (bytes < kib) return `${bytes} B`
  if (bytes < mib) return `${(bytes / kib).toFixed(1)} KiB`
  return bytes < gib ? `${(bytes / mib).toFixed(1)} MiB` : `${(bytes / gib).toFixed(1)} GiB`
}

/** A list of a result. */
export interface ShownList {
  /** The schema of its items. */
  readonly item: TSchema
  readonly items: readonly object[]
  /** The fields of the items that are columns, in the order of their importance. */
  readonly columns: readonly string[]
}

/**
 * Returns a list as lines: a table with a line for each item and a column for each field that the view shows, or CSV. A field
 * that may be absent has no column if no item has it.
 */
export function listLines({ item, items, columns }: ShownList, view: View): readonly string[] {
  const rows = items.map((each) => new Map<string, unknown>(Object.entries(each)))
  if (view.form === 'csv') {
    const fields = view.columns ?? fieldNames(item)
    return csvLines(
      fields,
      rows.map((row) => fields.map((field) => csvValue(fieldOf(item, field), row.get(field)))),
    )
  }
  const others = view.isWide ? [...fieldNames(item), ...rows.flatMap((row) => [...row.keys()])] : []
  const fields =
    view.columns ??
    [...new Set([...columns, ...others])].filter(
      (field) => !Type.IsOptional(fieldOf(item, field)) || rows.some((row) => row.has(field)),
    )
  const table = {
    head: fields.map((field) => headOf(item, field)),
    kinds: fields.map((field) =>
      kindOf(
        fieldOf(item, field),
        rows.map((row) => row.get(field)),
      ),
    ),
    rows: rows.map((row) =>
      fields.map((field) => columnCell(fieldOf(item, field), row.get(field), view.nowMs)),
    ),
  }
  return view.table(table, fields)
}

/** Returns the names of the fields of an object. */
export function fieldNames(schema: TSchema): readonly string[] {
  return Type.IsObject(schema) ? Object.keys(schema.properties) : []
}

function kindOf(schema: TSchema, values: readonly unknown[]): ColumnKind {
  const as = asOf(schema)
  if (as === 'name' || as === 'reason') return as
  const known = values.filter((value) => value !== null && value !== undefined)
  const areNumbers = known.length > 0 && known.every((value) => typeof value === 'number')
  return areNumbers && as !== 'time' ? 'number' : 'whole'
}

/** The head of a column says whether it has milliseconds. */
function columnCell(schema: TSchema, value: unknown, nowMs: number | undefined): string {
  return asOf(schema) === 'ms' ? cell(value) : fieldCell(schema, value, nowMs)
}

/** A value of a list: a number stays as it is. */
export type CsvValue = string | number | boolean | null | undefined

/**
 * Returns a list as CSV (RFC 4180), for spreadsheets and programs: its lines, the names first, without the CRLF at their ends.
 *
 * A text that begins as a formula does gets an apostrophe before it: somebody else may have chosen it, such as the name of a
 * bot, and a spreadsheet would run it.
 */
export function csvLines(
  names: readonly string[],
  rows: readonly (readonly CsvValue[])[],
): readonly string[] {
  return [names, ...rows].map((row) => row.map(csvCell).join(','))
}

function csvCell(value: CsvValue): string {
  if (value === null || value === undefined) return ''
  if (typeof value !== 'string') return `${value}`
  const shown = harmless(value)
  const text = /^[=+\-@]/.test(shown) ? `'${shown}` : shown
  return /[",]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** A spreadsheet counts with numbers, and reads dates. */
function csvValue(schema: TSchema, value: unknown): CsvValue {
  if (value === null || value === undefined || typeof value === 'boolean') return value
  if (typeof value === 'number') return asOf(schema) === 'time' ? fieldCell(schema, value) : value
  if (typeof value === 'string') return value
  const isFlat = Array.isArray(value) && value.every((each) => typeof each !== 'object')
  return isFlat ? value.join(',') : JSON.stringify(value)
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

/** A name of a field, and its value. */
export type FieldPair = readonly [name: string, value: string]

/**
 * Returns the fields of one thing. An object of objects has a pair for each of these.
 *
 * @param nowMs - for people at a terminal, who are not told what is null; undefined for all fields
 */
export function fieldPairs(
  schema: TSchema,
  fields: object,
  { nowMs, before = '' }: { readonly nowMs: number | undefined; readonly before?: string },
): readonly FieldPair[] {
  return Object.entries(fields).flatMap(([field, value]: [string, unknown]) => {
    const inner = fieldOf(schema, field)
    const name = `${before}${labelOf(inner, field)}`
    if (isNested(value)) return fieldPairs(inner, value, { nowMs, before: `${name} ` })
    const shown = singleCell(inner, value, nowMs)
    return nowMs !== undefined && shown === emptyCell ? [] : [[name, shown] as const]
  })
}

/** There is place for a date beside the age, as the log has it. */
function singleCell(schema: TSchema, value: unknown, nowMs: number | undefined): string {
  const shown = fieldCell(schema, value, nowMs)
  if (nowMs === undefined || typeof value !== 'number' || asOf(schema) !== 'time') return shown
  return `${shown} (${utcText(value * 1_000)})`
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

/** Returns the schema of the items of a list. */
function itemOf(schema: TSchema): TSchema {
  const list = choicesOf(schema).find((each) => Type.IsArray(each))
  return list?.items ?? Type.Unknown()
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
