/** One case as text: its table, and whether its targets were met. */
import type { CaseResult, Row } from './case-result.ts'
import { threadKinds } from './thread-cpu.ts'
import { verdictOf } from './verdict.ts'

interface Column {
  readonly heading: string
  readonly cell: (row: Row) => string
}

export function caseTable(result: CaseResult): string {
  const { rows, targets, title, error } = result
  if (error !== undefined) return `### ${title}\n\n- failed: ${error}\n`
  const columns = columnsOf(rows)
  const lines = markdownTable([
    columns.map(({ heading }) => heading),
    ...rows.map((row) => columns.map(({ cell }) => cell(row))),
  ])
  const verdicts = targets.flatMap((target) => {
    const verdict = verdictOf(target, result)
    if (verdict === undefined) return []
    return `- ${verdict.isMet ? 'met' : 'missed'}: ${verdict.want}, measured ${verdict.got}`
  })
  const after = verdicts.length > 0 ? [...verdicts, ''] : []
  return [`### ${title}`, '', ...lines, '', ...threadLines(rows), ...after].join('\n')
}

/** The CPU time of an operation by thread, of each process. */
function threadLines(rows: readonly Row[]): readonly string[] {
  const processes = rows.flatMap(({ name, cpuUsByThread = {} }) =>
    Object.entries(cpuUsByThread).map(([process, byThread]) => [
      `${name}: ${process}`,
      ...threadKinds.map((kind) => byThread[kind]?.toFixed(2) ?? ''),
    ]),
  )
  if (processes.length === 0) return []
  return [...markdownTable([['CPU us/op by thread', ...threadKinds], ...processes]), '']
}

function columnsOf(rows: readonly Row[]): Column[] {
  const processes = new Set(rows.flatMap(({ cpuUsByProcess }) => Object.keys(cpuUsByProcess)))
  const figures = new Set(rows.flatMap((row) => Object.keys(row.figures)))
  return [
    { heading: 'contestant', cell: ({ name }) => name },
    { heading: 'ops/s', cell: (row) => Math.round(row.operationsPerSecond).toLocaleString('en') },
    { heading: 'CPU us/op', cell: (row) => row.cpuUsPerOperation.toFixed(2) },
    ...[...processes].map((name) => ({
      heading: name,
      cell: (row: Row) => row.cpuUsByProcess[name]?.toFixed(2) ?? '',
    })),
    { heading: 'load us/op', cell: (row) => row.loadCpuUsPerOperation.toFixed(2) },
    { heading: 'load CPUs', cell: (row) => row.loadCpus.toFixed(2) },
    { heading: 'ours: speed', cell: (row) => `${row.rateRatio.toFixed(2)} x` },
    { heading: 'ours: CPU', cell: (row) => `${row.cpuRatio.toFixed(2)} x` },
    { heading: 'RSS MB', cell: ({ residentBytes }) => megabytes(residentBytes) },
    ...[...figures].map((name) => ({
      heading: name,
      cell: (row: Row) => row.figures[name]?.toFixed(2) ?? '',
    })),
  ]
}

function megabytes(bytes: number | undefined): string {
  return bytes === undefined ? '' : String(Math.round(bytes / 1e6))
}

/** The first row has the headings. */
export function markdownTable(rows: readonly (readonly string[])[]): string[] {
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
