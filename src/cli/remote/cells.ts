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

/** Returns a duration in seconds as a cell: `42 s`, `3 min`, `5 h` or `2 d`. */
export function ageCell(ageS: number | null | undefined): string {
  if (typeof ageS !== 'number') return '-'
  if (ageS < 120) return `${Math.round(ageS)} s`
  if (ageS < 7_200) return `${Math.floor(ageS / 60)} min`
  return ageS < 172_800 ? `${Math.floor(ageS / 3_600)} h` : `${Math.floor(ageS / 86_400)} d`
}
