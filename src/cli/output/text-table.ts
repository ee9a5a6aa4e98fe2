/**
 * Tables for people. On a terminal, a table is as wide as the terminal at most: the widest columns are cut, and `…` stands
 * for what is missing. Elsewhere, such as in a pipe, nothing is cut. Pure.
 *
 * Some cells come from outside, such as the error of a webhook, so control characters are replaced: they could move the
 * cursor of the terminal, or do worse.
 */
import { visible } from '../../kit/text/visible.ts'

/** A column is cut to this many characters at least. */
const cutWidthMin = 6
const gap = '  '

export interface TableRows {
  readonly head: readonly string[]
  readonly rows: readonly (readonly string[])[]
}

/**
 * Returns a table as lines, the head first.
 *
 * @param widthMax - in characters; Infinity cuts nothing
 */
export function textTable({ head, rows }: TableRows, widthMax = Infinity): readonly string[] {
  const lines = [head, ...rows].map((line) => line.map(harmless))
  const widths = fittingWidths(
    head.map((_, column) => Math.max(...lines.map((line) => lengthOf(line[column] ?? '')))),
    widthMax,
  )
  return lines.map((line) =>
    line
      .map((cell, column) => fitted(cell, widths[column] ?? 0))
      .join(gap)
      .trimEnd(),
  )
}

/** Takes characters from the widest column until the table fits or all columns are narrow. */
function fittingWidths(wanted: readonly number[], widthMax: number): readonly number[] {
  const widths = [...wanted]
  const available = widthMax - gap.length * (widths.length - 1)
  for (;;) {
    const widest = Math.max(...widths)
    const excess = widths.reduce((sum, width) => sum + width, 0) - available
    if (excess <= 0 || widest <= cutWidthMin) return widths
    const others = widths.filter((width) => width < widest)
    const next = Math.max(cutWidthMin, ...others)
    const count = widths.length - others.length
    const taken = Math.max(1, Math.min(widest - next, Math.ceil(excess / count)))
    for (const [column, width] of widths.entries()) {
      if (width === widest) widths[column] = width - taken
    }
  }
}

function fitted(cell: string, width: number): string {
  const characters = Array.from(cell)
  const text = characters.length > width ? `${characters.slice(0, width - 1).join('')}…` : cell
  return text + ' '.repeat(Math.max(0, width - lengthOf(text)))
}

/** In code points: a character outside the basic plane takes two units of a string. */
function lengthOf(text: string): number {
  return Array.from(text).length
}

/** Returns the text without characters that nobody can see, or that a terminal may act upon. */
export function harmless(text: string): string {
  return visible(text, '?')
}
