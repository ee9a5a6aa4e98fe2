/** The table of `postbote size`, from the case `sizing` of a report: `npm run bench -- --page REPORT`. */
import type { Row } from './case-result.ts'
import type { SavedReport } from './report.ts'

const marker = 'export const sizeMachine = '

/**
 * Returns the source of the table with the points of a report, or as it is if the report has none.
 *
 * @param source - the file as it is, whose types stay
 */
export function withSizePoints(source: string, report: SavedReport): string {
  const rowsOf = (wanted: string): readonly Row[] =>
    report.cases.find(({ name }) => name === wanted)?.rows ?? []
  const rows = rowsOf('sizing')
  if (rows.length === 0) return source
  const [two, one] = rowsOf('growth')
  if (two === undefined || one === undefined) throw new Error('the report has no case growth')
  const share = one.cpuUsPerOperation / two.cpuUsPerOperation
  const { cpus, cpu, node } = report.machine
  const at = source.indexOf(marker)
  if (at < 0) throw new Error('the table of sizes has no marker')
  return `${source.slice(0, at)}${marker}'${cpus} x ${cpu}, Node ${node}'
export const sizeReport = '${report.name}.md'
/** The CPU time of one worker, which forwards nothing, as a part of that of two: the case \`growth\`. */
export const oneWorkerShare = ${Number(share.toFixed(3))}

export const sizePoints: readonly SizePoint[] = [
${rows.map((row) => `  ${pointText(row)},`).join('\n')}
]
`
}

function pointText({ name, figures }: Row): string {
  const of = (figure: string): number => figures[figure] ?? Number.NaN
  const round = (figure: string, digits: number): number => Number(of(figure).toFixed(digits))
  const mode = name.startsWith('webhook') ? 'webhook' : 'poll'
  const parts = [
    `mode: '${mode}'`,
    `workers: ${of('workers')}`,
    `bots: ${of('bots')}`,
    `updatesPerSecond: ${of('rate')}`,
    `backlog: ${of('backlog')}`,
    `cores: ${round('cores', 4)}`,
    `memoryMb: ${round('PSS MB', 1)}`,
    `diskMb: ${round('disk MB', 1)}`,
  ]
  // On lines of their own, as the formatter has them.
  return `{\n${parts.map((part) => `    ${part},\n`).join('')}  }`
}
