/**
 * A list as CSV (RFC 4180), for spreadsheets and programs. Pure.
 *
 * A text that begins as a formula does gets an apostrophe before it: somebody else may have chosen it, such as the name of a
 * bot, and a spreadsheet would run it.
 */
import { harmless } from './text-table.ts'

/** A value of a list: a number stays as it is. */
export type CsvValue = string | number | boolean | null | undefined

/** Returns the lines, the names first, without the CRLF at their ends. */
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
