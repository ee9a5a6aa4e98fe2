/** The one table, as text for the terminal and for bench/results, and the same as JSON with every sample. */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { CaseResult, Row } from './alternate.ts'
import type { Target } from './contestant.ts'
import type { Machine } from './machine.ts'

const header = [
  'contestant',
  'ops/s',
  'CPU us/op',
  'load CPU us/op',
  'ours: speed',
  'ours: CPU',
  'RSS MB',
]

export function caseTable(result: CaseResult): string {
  const ownColumns = [...new Set(result.rows.flatMap(({ figures }) => Object.keys(figures)))]
  const rows = result.rows.map((row) => [
    row.name,
    Math.round(row.operationsPerSecond).toLocaleString('en'),
    row.cpuUsPerOperation.toFixed(2),
    row.loadCpuUsPerOperation.toFixed(2),
    `${row.rateRatio.toFixed(2)} x`,
    `${row.cpuRatio.toFixed(2)} x`,
    row.residentBytes === undefined ? '' : String(Math.round(row.residentBytes / 1e6)),
    ...ownColumns.map((name) => row.figures[name]?.toFixed(2) ?? ''),
  ])
  const lines = [
    `### ${result.benchCase.title}`,
    '',
    ...markdownTable([[...header, ...ownColumns], ...rows]),
    '',
  ]
  const targets = result.benchCase.targets.flatMap((target) => targetLine(target, result) ?? [])
  return [...lines, ...targets, ...(targets.length > 0 ? [''] : [])].join('\n')
}

export function reportText(machine: Machine, results: readonly CaseResult[]): string {
  return [
    `# Bench at ${machine.commit}`,
    '',
    `${machine.cpus} x ${machine.cpu}, ${machine.memoryGib} GiB, Linux ${machine.kernel}, Node ${machine.node}`,
    '',
    'Medians; load generator and yardsticks on the same machine. "ours" is our figure divided by the row’s, taken per round.',
    '',
    ...results.map((result) => caseTable(result)),
  ].join('\n')
}

/** Writes <date>-<commit>.md and .json; resolves with the path of the former. */
export async function writeReport(
  directory: string,
  machine: Machine,
  results: readonly CaseResult[],
): Promise<string> {
  await mkdir(directory, { recursive: true })
  const name = `${new Date().toISOString().slice(0, 10)}-${machine.commit}`
  const path = join(directory, `${name}.md`)
  await writeFile(path, reportText(machine, results))
  const cases = results.map(({ benchCase, rows }) => ({ name: benchCase.name, rows }))
  await writeFile(
    join(directory, `${name}.json`),
    `${JSON.stringify({ machine, cases }, null, 1)}\n`,
  )
  return path
}

function targetLine(target: Target, result: CaseResult): string | undefined {
  const against = target.kind === 'rate' ? result.rows[0]?.name : target.against
  const row = result.rows.find(({ name }) => name === against)
  if (row === undefined) return undefined
  const { want, got, isMet } = judged(target, row)
  return `- ${isMet ? 'met' : 'missed'}: ${want}, measured ${got}`
}

interface Verdict {
  readonly want: string
  readonly got: string
  readonly isMet: boolean
}

function judged(target: Target, row: Row): Verdict {
  const { operationsPerSecond, rateRatio, cpuRatio } = row
  if (target.kind === 'rate') {
    return {
      want: `at least ${target.min.toLocaleString('en')} a second`,
      got: Math.round(operationsPerSecond).toLocaleString('en'),
      isMet: operationsPerSecond >= target.min,
    }
  }
  if (target.kind === 'rateRatio') {
    return {
      want: `at least ${target.min} of the speed of ${row.name}`,
      got: rateRatio.toFixed(2),
      isMet: rateRatio >= target.min,
    }
  }
  return {
    want: `at most ${target.max} x the CPU of ${row.name} an operation`,
    got: cpuRatio.toFixed(2),
    isMet: cpuRatio <= target.max,
  }
}

function markdownTable(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0)),
  )
  const lines = rows.map((row) => {
    const cells = row.map((cell, column) =>
      column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0),
    )
    return `| ${cells.join(' | ')} |`
  })
  const rule = widths.map((width, column) =>
    column === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`,
  )
  return [lines[0] ?? '', `| ${rule.join(' | ')} |`, ...lines.slice(1)]
}
