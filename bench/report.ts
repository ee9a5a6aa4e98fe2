/**
 * The report under bench/results: <name>.json with every sample, and made from it <name>.md with its charts,
 * <name>-<group>.svg. Since the JSON holds all there is to show, cases that are run again can take the place of
 * what they gave before, and a run that was cut short leaves what it had.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { CaseResult } from './case-result.ts'
import { caseTable } from './case-table.ts'
import type { CaseGroup } from './contestant.ts'
import { groupCharts } from './group-charts.ts'
import type { Machine } from './machine.ts'

interface ReportOptions {
  readonly directory: string
  readonly name: string
  readonly machine: Machine
  readonly groups: readonly CaseGroup[]
}

export class Report {
  readonly #options: ReportOptions
  readonly #results: Map<string, CaseResult>

  private constructor(options: ReportOptions, results: readonly CaseResult[]) {
    this.#options = options
    this.#results = new Map(results.map((result) => [result.name, result]))
  }

  /** Of today and this commit. */
  static begin(options: Omit<ReportOptions, 'name'>): Report {
    const name = `${new Date().toISOString().slice(0, 10)}-${options.machine.commit}`
    return new Report({ ...options, name }, [])
  }

  /** One that there is already; `name` may be given with the directory or an ending. */
  static async continued(options: ReportOptions): Promise<Report> {
    const name = basename(options.name).replace(/\.(?:json|md)$/, '')
    const text = await readFile(join(options.directory, `${name}.json`), 'utf8')
    const { machine, cases }: { machine: Machine; cases: CaseResult[] } = JSON.parse(text)
    return new Report({ ...options, name, machine }, cases)
  }

  get path(): string {
    return join(this.#options.directory, `${this.#options.name}.md`)
  }

  async add(result: CaseResult): Promise<void> {
    // A case that fails when it is run again does not take away what was measured.
    if (result.error === undefined || !this.#results.has(result.name)) {
      this.#results.set(result.name, result)
    }
    await this.#write()
  }

  async #write(): Promise<void> {
    const { directory, name, machine, groups } = this.#options
    await mkdir(directory, { recursive: true })
    const inOrder = groups.map((group) => ({
      group,
      results: group.cases.flatMap((each) => this.#results.get(each.name) ?? []),
    }))
    const cases = inOrder.flatMap(({ results }) => results)
    const json = `${JSON.stringify({ machine, cases }, null, 1)}\n`
    await writeFile(join(directory, `${name}.json`), json)
    const parts: string[] = [reportHead(machine)]
    for (const { group, results } of inOrder) {
      if (results.length === 0) continue
      parts.push(`## ${group.title}\n`)
      for (const chart of groupCharts(group, results)) {
        const file = `${name}-${chart.name}.svg`
        await writeFile(join(directory, file), chart.svg)
        parts.push(`![${chart.title}](${file})\n`)
      }
      parts.push(...results.map((result) => tableWithCommit(result, machine)))
    }
    await writeFile(this.path, parts.join('\n'))
  }
}

export function reportHead(machine: Machine): string {
  return [
    `# Bench at ${machine.commit}`,
    '',
    `${machine.cpus} x ${machine.cpu}, ${machine.memoryGib} GiB, Linux ${machine.kernel}, Node ${machine.node}`,
    '',
    'Medians; load generator and yardsticks on the same machine. "ours" is our figure divided by the row’s, taken per round.',
    '',
  ].join('\n')
}

function tableWithCommit(result: CaseResult, machine: Machine): string {
  const table = caseTable(result)
  return result.commit === machine.commit ? table : `${table}\nMeasured at ${result.commit}.\n`
}
