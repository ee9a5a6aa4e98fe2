/**
 * The tables of docs/know/benchmarks.md, from a report: `npm run bench -- --page REPORT`. The page has one current table, and
 * nobody copies figures by hand.
 */
import type { CaseResult, Row } from './case-result.ts'
import { markdownTable } from './case-table.ts'
import { commonYardstick } from './http-contestants.ts'
import type { SavedReport } from './report.ts'
import { verdictOf } from './verdict.ts'

const begin = '<!-- The tables are written by `npm run bench -- --page REPORT`. -->'
const end = '<!-- End of the tables. -->'

/** Returns the page with the results of the report in place of earlier ones. */
export function withResults(page: string, report: SavedReport): string {
  const from = page.indexOf(begin) + begin.length
  const to = page.indexOf(end)
  if (from < begin.length || to < from) throw new Error('the page has no markers for the tables')
  return `${page.slice(0, from)}\n\n${tables(report)}\n\n${page.slice(to)}`
}

function tables({ name, machine, cases }: SavedReport): string {
  const measured = cases.filter(({ rows }) => rows.length > 0)
  const { cpus, cpu, node } = machine
  return [
    `${cpus} x ${cpu}, Node ${node} ([the complete report, with charts](../../bench/results/${name}.md)):`,
    '',
    ...markdownTable([
      ['case', 'a second', 'CPU us/op', 'main threads', 'beside its yardsticks', 'targets'],
      ...measured.filter((each) => !isBesideQueues(each)).map(caseLine),
    ]),
    '',
    'Beside other queues, with the CPU time of an event or a delivery by process:',
    '',
    ...markdownTable([
      ['case', 'queue', 'a second', 'CPU us/op', 'by process', 'p50, p99 ms'],
      ...measured
        .filter(isBesideQueues)
        .flatMap(({ name: nameOfCase, rows }) => rows.map((row) => queueLine(nameOfCase, row))),
    ]),
  ].join('\n')
}

function isBesideQueues({ name }: CaseResult): boolean {
  return name.startsWith('peers')
}

function caseLine(result: CaseResult): string[] {
  const { name, rows, targets } = result
  const [ours, ...others] = rows
  const yardsticks = others.filter((row) => row.name !== commonYardstick)
  const verdicts = targets.flatMap((target) => {
    const verdict = verdictOf(target, result)
    if (verdict === undefined) return []
    return `${verdict.want}: ${verdict.isMet ? 'met' : 'missed'} (${verdict.got})`
  })
  return [
    `\`${name}\``,
    rateOf(ours),
    ours?.cpuUsPerOperation.toFixed(1) ?? '',
    ours === undefined ? '' : mainThreads(ours),
    yardsticks
      .map(
        (row) =>
          `${row.name}: ${row.rateRatio.toFixed(2)} x speed, ${row.cpuRatio.toFixed(2)} x CPU`,
      )
      .join('; '),
    verdicts.join('; '),
  ]
}

function queueLine(nameOfCase: string, row: Row): string[] {
  const { name, cpuUsPerOperation, cpuUsByProcess, figures } = row
  const delays = [figures['p50 ms'], figures['p99 ms']]
  return [
    `\`${nameOfCase}\``,
    name,
    rateOf(row),
    cpuUsPerOperation.toFixed(1),
    Object.entries(cpuUsByProcess)
      .map(([process, us]) => `${process} ${us.toFixed(1)}`)
      .join(', '),
    delays.flatMap((ms) => ms?.toFixed(1) ?? []).join(', '),
  ]
}

function rateOf(row: Row | undefined): string {
  return row === undefined ? '' : Math.round(row.operationsPerSecond).toLocaleString('en')
}

/** Reports that are older than the threads have none. */
function mainThreads({ cpuUsByThread = {} }: Row): string {
  const times = Object.values(cpuUsByThread)
  return times.length === 0 ? '' : times.reduce((sum, { main = 0 }) => sum + main, 0).toFixed(1)
}
