/** What a case consists of: contestants that do the same work under the same load, ours first. */

/** One measured run of one contestant. */
export interface Sample {
  readonly operations: number
  readonly seconds: number
  /** Of the contestant's processes; undefined where only its speed is compared. */
  readonly cpuUs: number
  /** Of the load generator or the sink, which share the machine. */
  readonly loadCpuUs: number
}

export interface Contestant {
  readonly name: string
  run(durationMs: number): Promise<Sample>
  /** Bytes of memory of its processes now, where that tells something. */
  residentBytes?(): number
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
  /** Where the server's CPU profiles go; undefined: none are taken. */
  readonly profileDirectory: string | undefined
  /** Only our own contestant: for profiles. */
  readonly isAlone: boolean
  /** Registers what must be closed when the case is over or could not begin; the last one is closed first. */
  atEnd(close: () => Promise<void>): void
}

export interface BenchCase {
  readonly name: string
  readonly title: string
  /** What one operation is. */
  readonly operation: string
  readonly targets: readonly Target[]
  open(context: CaseContext): Promise<readonly Contestant[]>
}
