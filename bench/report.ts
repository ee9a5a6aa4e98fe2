/**
 * The report under bench/results: <name>.json with every sample, and generated from it <name>.md with its charts,
 * <name>-<group>.svg and <name>-overview.svg. The JSON has everything that is shown, so cases that are run again can replace their earlier
 * results, and an interrupted run leaves what it had.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { CaseResult } from './case-result.ts'
import { caseTable } from './case-table.ts'
import type { CaseGroup } from './contestant.ts'
import { groupCharts } from './group-charts.ts'
import type { Machine } from './machine.ts'
import { overviewChart } from './overview-chart.ts'
import type { ProfileShares, Share } from './profile-summary.ts'

/** Where the workers of a case spent their time. */
export interface CaseProfile {
  readonly name: string
  readonly commit: string
  readonly shares: ProfileShares
}

export interface SavedReport {
  readonly name: string
  readonly machine: Machine
  readonly cases: readonly CaseResult[]
  readonly profiles: readonly CaseProfile[]
}

const profileLinesMax = 10

interface ReportOptions {
  readonly directory: string
  readonly name: string
  readonly machine: Machine
  readonly groups: readonly CaseGroup[]
}

export class Report {
  readonly #options: ReportOptions
  readonly #results: Map<string, CaseResult>
  readonly #profiles: Map<string, CaseProfile>

  private constructor(options: ReportOptions, saved: Pick<SavedReport, 'cases' | 'profiles'>) {
    this.#options = options
    this.#results = new Map(saved.cases.map((result) => [result.name, result]))
    this.#profiles = new Map(saved.profiles.map((profile) => [profile.name, profile]))
  }

  /** Begins a report of today and this commit. */
  static begin(options: Omit<ReportOptions, 'name'>): Report {
    const name = `${new Date().toISOString().slice(0, 10)}-${options.machine.commit}`
    return new Report({ ...options, name }, { cases: [], profiles: [] })
  }

  /** Continues an existing report; `name` may include the directory or an extension. */
  static async continued(options: ReportOptions): Promise<Report> {
    const saved = await savedReport(options.directory, options.name)
    return new Report({ ...options, name: saved.name, machine: saved.machine }, saved)
  }

  get path(): string {
    return join(this.#options.directory, `${this.#options.name}.md`)
  }

  async add(result: CaseResult): Promise<void> {
    // A case that fails when it is run again does not replace earlier results.
    if (result.error === undefined || !this.#results.has(result.name)) {
      this.#results.set(result.name, result)
    }
    await this.#write()
  }

  async addProfile(profile: CaseProfile): Promise<void> {
    this.#profiles.set(profile.name, profile)
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
    const saved = { machine, cases, profiles: [...this.#profiles.values()] }
    await writeFile(join(directory, `${name}.json`), `${JSON.stringify(saved, null, 1)}\n`)
    const parts: string[] = [reportHead(machine)]
    const overview = overviewChart(cases)
    if (overview !== undefined) {
      await writeFile(join(directory, `${name}-overview.svg`), overview)
      parts.push(`![What an operation costs](${name}-overview.svg)\n`)
    }
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
    parts.push(...profileParts([...this.#profiles.values()]))
    await writeFile(this.path, parts.join('\n'))
  }
}

/** Reads a report; `given` may include the directory or an extension. */
export async function savedReport(directory: string, given: string): Promise<SavedReport> {
  const name = basename(given).replace(/\.(?:json|md)$/, '')
  const saved: Omit<SavedReport, 'name'> = JSON.parse(
    await readFile(join(directory, `${name}.json`), 'utf8'),
  )
  return { ...saved, name }
}

function profileParts(profiles: readonly CaseProfile[]): string[] {
  if (profiles.length === 0) return []
  return [
    '## Profiles\n\nSelf time of the workers; waiting for a CPU counts as busy.\n',
    ...profiles.map(({ name, commit, shares }) =>
      [
        `### ${name}, at ${commit}\n`,
        '| function | part | charged to ours | part | file | part |',
        '| --- | ---: | --- | ---: | --- | ---: |',
        ...Array.from({ length: profileLinesMax }, (_, index) =>
          profileLine([shares.self[index], shares.charged[index], shares.files[index]]),
        ),
        '',
      ].join('\n'),
    ),
  ]
}

function profileLine(shares: readonly (Share | undefined)[]): string {
  const cells = shares.map((share) =>
    share === undefined ? ' | ' : `\`${share[0]}\` | ${(100 * share[1]).toFixed(1)} %`,
  )
  return `| ${cells.join(' | ')} |`
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
