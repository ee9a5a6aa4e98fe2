/** The CPU time of a contestant and of its load between two moments. */
import type { CpuUsByProcess } from './contestant.ts'

export interface Metered {
  /** Returns the CPU time so far, by name of the process. */
  cpuUsByProcess(): CpuUsByProcess
}

export interface Costs {
  readonly cpuUs: number
  readonly loadCpuUs: number
  /** Omitted for a contestant with one process. */
  readonly cpuUsByProcess?: CpuUsByProcess
}

/** Starts a measurement. The returned function returns the CPU time since then. */
export function meterCpu(own: readonly Metered[], load: readonly Metered[]): () => Costs {
  const ownBefore = readAll(own)
  const loadBefore = readAll(load)
  return () => {
    const byProcess = difference(ownBefore, readAll(own))
    const loadCpuUs = sum(difference(loadBefore, readAll(load)))
    const costs = { cpuUs: sum(byProcess), loadCpuUs }
    return Object.keys(byProcess).length < 2 ? costs : { ...costs, cpuUsByProcess: byProcess }
  }
}

/** Processes of the same name are added up. */
function readAll(sources: readonly Metered[]): CpuUsByProcess {
  const totals: Record<string, number> = {}
  for (const source of sources) {
    for (const [name, us] of Object.entries(source.cpuUsByProcess())) {
      totals[name] = (totals[name] ?? 0) + us
    }
  }
  return totals
}

/** A process that has ended since then took its time with it and counts as zero. */
function difference(before: CpuUsByProcess, after: CpuUsByProcess): CpuUsByProcess {
  return Object.fromEntries(
    Object.entries(after).map(([name, us]) => [name, Math.max(us - (before[name] ?? 0), 0)]),
  )
}

function sum(byProcess: CpuUsByProcess): number {
  return Object.values(byProcess).reduce((total, us) => total + us, 0)
}
