/** What a case consists of: contestants that do the same work under the same load, ours first. */
import type { CpuProfile } from './inspected-process.ts'

/** One measured run of one contestant. */
export interface Sample {
  readonly operations: number
  readonly seconds: number
  /** Of the contestant's processes. */
  readonly cpuUs: number
  /** Of the load generator or the sink, which share the machine. */
  readonly loadCpuUs: number
  /** What only this case tells, by the heading of its column. */
  readonly figures?: Readonly<Record<string, number>>
}

export interface Contestant {
  readonly name: string
  run(durationMs: number): Promise<Sample>
  /** Bytes of memory of its processes now, where that tells something. */
  residentBytes?(): number
  /** Of all its measured runs and all its processes, if it was to be profiled. */
  readonly profiles?: readonly CpuProfile[]
}

/** What a case wants to reach, reported and not asserted. */
export type Target =
  | { readonly kind: 'rate'; readonly min: number }
  | { readonly kind: 'rateRatio'; readonly against: string; readonly min: number }
  | { readonly kind: 'cpuRatio'; readonly against: string; readonly max: number }

export interface CaseContext {
  /** An empty directory of this case. */
  readonly directory: string
  readonly workers: number
  /** Only our own contestant runs, and its processes are profiled. */
  readonly isProfiled: boolean
  /** Registers what must be closed when the case is over or could not begin; the last one is closed first. */
  atEnd(close: () => Promise<void>): void
}

export interface BenchCase {
  readonly name: string
  readonly title: string
  /** What one operation is. */
  readonly operation: string
  readonly targets: readonly Target[]
  /** --quick leaves it out unless it is named: another case shows whether such a one runs. */
  readonly isLong?: boolean
  open(context: CaseContext): Promise<readonly Contestant[]>
}
