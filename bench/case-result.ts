/** What a case gave, as it stands in the report's JSON: enough to write the report again from it. */
import type { Charted, CpuUsByProcess, Sample, Target } from './contestant.ts'

export interface Row {
  readonly name: string
  readonly operationsPerSecond: number
  readonly cpuUsPerOperation: number
  /** The same by process, where it is known. */
  readonly cpuUsByProcess: CpuUsByProcess
  readonly loadCpuUsPerOperation: number
  /** How many CPUs the load kept busy. One process of it that comes near 1 is what the rate ends at. */
  readonly loadCpus: number
  /** Ours to this one's, in speed and in CPU per operation; 1 for ours. */
  readonly rateRatio: number
  readonly cpuRatio: number
  readonly residentBytes: number | undefined
  /** Medians of the samples' own. */
  readonly figures: Readonly<Record<string, number>>
  readonly samples: readonly Sample[]
}

export interface CaseResult {
  readonly name: string
  readonly title: string
  readonly operation: string
  readonly targets: readonly Target[]
  readonly charted: Charted | undefined
  /** What was measured: a report may have cases of several runs. */
  readonly commit: string
  readonly rows: readonly Row[]
  /** Why there are none. */
  readonly error: string | undefined
}
