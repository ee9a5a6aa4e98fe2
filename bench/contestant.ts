/** The parts of a case: contestants that do the same work under the same load, ours first. */
import type { CpuProfile } from './inspected-process.ts'
import type { CpuUsByThread } from './thread-cpu.ts'

export type CpuUsByProcess = Readonly<Record<string, number>>

/** One measured run of one contestant. */
export interface Sample {
  readonly operations: number
  readonly seconds: number
  /** CPU time of the contestant's processes. */
  readonly cpuUs: number
  /** The same by name of the process, if there is more than one kind. */
  readonly cpuUsByProcess?: CpuUsByProcess
  /** The same of its threads, by name of the process. */
  readonly cpuUsByThread?: Readonly<Record<string, CpuUsByThread>>
  /** CPU time of the load generator or the sink, which share the machine. */
  readonly loadCpuUs: number
  /** Figures of this case only, by the heading of their column. */
  readonly figures?: Readonly<Record<string, number>>
}

export interface Contestant {
  readonly name: string
  /** A program without a compiler needs no warm-up. */
  readonly isWarm?: boolean
  run(durationMs: number): Promise<Sample>
  /** The resident bytes of its processes now, if that is a useful figure. */
  residentBytes?(): number
  /** The profiles of all measured runs and all processes, if it is profiled. */
  readonly profiles?: readonly CpuProfile[]
}

/** A goal of a case, reported and not asserted. */
export type Target =
  | { readonly kind: 'rate'; readonly min: number }
  | { readonly kind: 'rateRatio'; readonly against: string; readonly min: number }
  | { readonly kind: 'cpuRatio'; readonly against: string; readonly max: number }
  /** A figure of the samples, of our contestant or the named one. */
  | { readonly kind: 'figure'; readonly figure: string; readonly max: number; readonly of?: string }
  /** A figure of our contestant, as a multiple of the other's. */
  | {
      readonly kind: 'figureRatio'
      readonly figure: string
      readonly against: string
      readonly max: number
    }
  /** Our contestant has a multiple of the other's workers, and all of them share the CPUs with their load. */
  | {
      readonly kind: 'scaling'
      readonly against: string
      readonly times: number
      readonly min: number
      /** The CPU time of an operation counts, and not the rate. */
      readonly isByCpu?: boolean
    }
  /** The CPU time of the named one's operations, as a multiple of our contestant's. */
  | { readonly kind: 'cpuGrowth'; readonly of: string; readonly max: number }

/** The figure that represents the case in the chart of its group. */
export type Charted =
  | { readonly kind: 'rateRatio' | 'cpuRatio'; readonly against: string }
  | { readonly kind: 'figure'; readonly figure: string }

export interface CaseContext {
  /** An empty directory of this case. */
  readonly directory: string
  readonly workers: number
  /** Only our own contestant runs. */
  readonly isAlone: boolean
  /** The processes of our own contestant are profiled. */
  readonly isProfiled: boolean
  /** The program of our own contestant. */
  readonly mainFile: string
  /** Registers a cleanup for the end of the case, also if the case could not begin; the last one runs first. */
  atEnd(close: () => Promise<void>): void
}

/** Cases that belong together and share a chart. */
export interface CaseGroup {
  readonly name: string
  readonly title: string
  readonly cases: readonly BenchCase[]
}

/** For cases whose clients or yardsticks must be warm, too: a run of 1 s measures the compiler and no compaction. */
export const warmPace = { warmUpMs: 3_000, durationMs: 4_000 }

export interface BenchCase {
  readonly name: string
  readonly title: string
  /** What one operation is. */
  readonly operation: string
  readonly targets: readonly Target[]
  readonly charted?: Charted
  /** --quick skips the case unless it is named: another case shows whether such a case runs. */
  readonly isLong?: boolean
  /** The case runs only if it is named, or with --all. */
  readonly isExtra?: boolean
  /** Replaces the usual lengths, except those of --quick. */
  readonly pace?: { readonly warmUpMs: number; readonly durationMs: number }
  /** Every run begins with new processes, which takes long: there is no warm-up, and there are at most this many rounds. */
  readonly freshRoundsMax?: number
  /** Replaces the time that a case may take, which is enough for the others. */
  readonly msMax?: number
  open(context: CaseContext): Promise<readonly Contestant[]>
}
