/** What a case consists of: contestants that do the same work under the same load, ours first. */
import type { CpuProfile } from './inspected-process.ts'

export type CpuUsByProcess = Readonly<Record<string, number>>

/** One measured run of one contestant. */
export interface Sample {
  readonly operations: number
  readonly seconds: number
  /** Of the contestant's processes. */
  readonly cpuUs: number
  /** The same by the name of the process, where there is more than one kind. */
  readonly cpuUsByProcess?: CpuUsByProcess
  /** Of the load generator or the sink, which share the machine. */
  readonly loadCpuUs: number
  /** What only this case tells, by the heading of its column. */
  readonly figures?: Readonly<Record<string, number>>
}

export interface Contestant {
  readonly name: string
  /** A program without a compiler is as fast at once as it will ever be. */
  readonly isWarm?: boolean
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
  /** One of the samples' own figures, of ours or of the contestant named. */
  | { readonly kind: 'figure'; readonly figure: string; readonly max: number; readonly of?: string }
  /** Ours has so many times the workers of the other, and all of them share the CPUs with their load. */
  | {
      readonly kind: 'scaling'
      readonly against: string
      readonly times: number
      readonly min: number
    }

/** What stands for the case in the chart of its group. */
export type Charted =
  | { readonly kind: 'rateRatio' | 'cpuRatio'; readonly against: string }
  | { readonly kind: 'figure'; readonly figure: string }

export interface CaseContext {
  /** An empty directory of this case. */
  readonly directory: string
  readonly workers: number
  /** Only our own contestant runs, and its processes are profiled. */
  readonly isProfiled: boolean
  /** Registers what must be closed when the case is over or could not begin; the last one is closed first. */
  atEnd(close: () => Promise<void>): void
}

/** Cases that are read together and share a chart. */
export interface CaseGroup {
  readonly name: string
  readonly title: string
  readonly cases: readonly BenchCase[]
}

export interface BenchCase {
  readonly name: string
  readonly title: string
  /** What one operation is. */
  readonly operation: string
  readonly targets: readonly Target[]
  readonly charted?: Charted
  /** --quick leaves it out unless it is named: another case shows whether such a one runs. */
  readonly isLong?: boolean
  /** Runs only where it is named, or with --all. */
  readonly isExtra?: boolean
  /** Every run begins with new processes, which takes long: no warm-up, and no more rounds than this. */
  readonly freshRoundsMax?: number
  open(context: CaseContext): Promise<readonly Contestant[]>
}
