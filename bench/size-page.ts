/** The costs of `postbote size`, from the cases `sizing-costs-...` of a report: `npm run bench -- --page REPORT`. */
import type { SavedReport } from './report.ts'
import { sizeCostsOf } from './sizing-steps.ts'

const marker = 'export const sizeMachine = '
/** More digits would say more than a measurement knows. */
const digits = 3

/**
 * Returns the source of the table with the costs from a report, or as it is if the report has none.
 *
 * @param source - the file as it is, whose types stay
 */
export function withSizeCosts(source: string, { name, machine, cases }: SavedReport): string {
  const rows = cases.flatMap((each) => (each.name.startsWith('sizing-costs') ? each.rows : []))
  if (rows.length === 0) return source
  const at = source.indexOf(marker)
  if (at < 0) throw new Error('the table of costs has no marker')
  const { cpus, cpu, node } = machine
  return `${source.slice(0, at)}${marker}'${cpus} x ${cpu}, Node ${node}'
export const sizeReport = '${name}.md'

export const sizeCosts: SizeCosts = ${textOf(sizeCostsOf(rows), '')}
`
}

/** As the formatter has it. */
function textOf(value: unknown, indent: string): string {
  if (typeof value === 'number') return String(Number(value.toPrecision(digits)))
  if (Array.isArray(value) && value.every((each) => typeof each === 'number'))
    return `[${value.map((each) => textOf(each, '')).join(', ')}]`
  const inner = `${indent}  `
  const lines = Object.entries(value ?? {}).map(
    ([key, each]) => `${inner}${Array.isArray(value) ? '' : `${key}: `}${textOf(each, inner)},\n`,
  )
  const [open, close] = Array.isArray(value) ? '[]' : '{}'
  return `${open}\n${lines.join('')}${indent}${close}`
}
