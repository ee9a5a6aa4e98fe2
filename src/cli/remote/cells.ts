/** How values of the private API are shown in tables. */
import { utcText } from '../../clock.ts'

/** Returns a value as a cell: `-` for none, and yes or no. */
export function cell(value: unknown): string {
  if (value === undefined || value === null || value === '') return '-'
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** Returns a time as a cell. `timeS` is in seconds since 1970. */
export function timeCell(timeS: number | null | undefined): string {
  return typeof timeS === 'number' ? utcText(timeS * 1_000) : '-'
}
