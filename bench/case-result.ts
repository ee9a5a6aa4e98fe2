/** The result of a case in the report's JSON: enough to write the report again. */
import type { Charted, CpuUsByProcess, Sample, Target } from './contestant.ts'
import type { CpuUsByThread } from './thread-cpu.ts'

export interface Row {
  readonly name: string
  readonly operationsPerSecond: number
  readonly cpuUsPerOperation: number
  /** The same by process, if known. */
  readonly cpuUsByProcess: CpuUsByProcess
  /** By process and kind of thread. Earlier reports lack it. */
  readonly cpuUsByThread?: Readonly<Record<string, CpuUsByThread>>
  readonly loadCpuUsPerOperation: number
  /** How many CPUs the load kept busy. If one of its processes comes near 1, that process limits the rate. */
  readonly loadCpus: number
  /** Our figure divided by this row's, for speed and for CPU per operation; 1 for our row. */
  readonly rateRatio: number
  readonly cpuRatio: number
  readonly residentBytes: number | undefined
  /** Medians of the figures of the samples. */
  readonly figures: Readonly<Record<string, number>>
  readonly samples: readonly Sample[]
}

export interface CaseResult {
  readonly name: string
  readonly title: string
  readonly operation: string
  readonly targets: readonly Target[]
  readonly charted: Charted | undefined
  /** The commit that was measured: a report may contain cases of several runs. */
  readonly commit: string
  readonly rows: readonly Row[]
  /** Why there are no rows. */
  readonly error: string | undefined
}
