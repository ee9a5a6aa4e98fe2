/** How values of the private API are shown in tables, by the names of their fields. */
import { utcText } from '../../kit/clock.ts'
import type { TableRows } from '../output/text-table.ts'

/** Returns a value as a cell: `-` for none, and yes or no. */
export function cell(value: unknown): string {
  if (value === undefined || value === null || value === '') return '-'
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** Returns a duration in seconds as a cell: `42 s`, `3 min`, `5 h` or `2 d`. */
export function ageCell(ageS: number | null | undefined): string {
  if (typeof ageS !== 'number') return '-'
  if (ageS < 120) return `${Math.round(ageS)} s`
  if (ageS < 7_200) return `${Math.floor(ageS / 60)} min`
  return ageS < 172_800 ? `${Math.floor(ageS / 3_600)} h` : `${Math.floor(ageS / 86_400)} d`
}

/** Fields that are seconds since 1970. */
const times: ReadonlySet<string> = new Set([
  'accepted',
  'created_at',
  'ended',
  'expires',
  'last_taken',
  'last_poll',
  'last_error_date',
  'last_update',
  'last_used',
  'left',
  'next_attempt',
  'next_poll',
  'next_retry',
  'since',
  'started',
  'time',
])
/** Names that are shorter in a head, where the column says the rest. */
const heads: ReadonlyMap<string, string> = new Map([
  ['duration_ms', 'ms'],
  ['oldest_age', 'oldest'],
  ['ordering_key', 'key'],
  ['requests_per_second', 'requests/s'],
  ['updates_per_second', 'updates/s'],
])

/** Returns the value of a field as a cell: an object is counts by their names. */
export function fieldCell(field: string, value: unknown): string {
  if (typeof value === 'number' && times.has(field)) return utcText(value * 1_000)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return cell(value)
  const counts = Object.entries(value).map(([name, count]) => `${name} ${cell(count)}`)
  return cell(counts.join(', '))
}

/**
 * Returns a table with a line for each item and a column for each of these fields.
 *
 * @param others - whether the other fields of the items follow
 */
export function itemTable<Item extends object>(
  items: readonly Item[],
  fields: readonly (keyof Item & string)[],
  others: 'others' | 'only these' = 'only these',
): TableRows {
  const more = others === 'others' ? items.flatMap((item) => Object.keys(item)) : []
  const shown = [...new Set<string>([...fields, ...more])]
  return {
    head: shown.map((field) => heads.get(field) ?? field),
    rows: items.map((item) => {
      const values = new Map<string, unknown>(Object.entries(item))
      return shown.map((field) => fieldCell(field, values.get(field)))
    }),
  }
}

/** Returns the fields, and `traceparent` if some item has one: most servers trace no updates. */
export function withTrace<Field extends string>(
  items: readonly { readonly traceparent?: string | undefined }[],
  fields: readonly Field[],
): readonly (Field | 'traceparent')[] {
  const isTraced = items.some(({ traceparent }) => traceparent !== undefined)
  return isTraced ? [...fields, 'traceparent'] : fields
}

/** Returns a table with a line for each field of one item. */
export function fieldTable(fields: Readonly<Record<string, unknown>>): TableRows {
  return {
    head: ['field', 'value'],
    rows: Object.entries(fields).map(([field, value]) => [field, fieldCell(field, value)]),
  }
}
