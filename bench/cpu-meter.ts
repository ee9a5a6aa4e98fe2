/** The CPU time of a contestant and of its load between two moments. */
import type { CpuUsByProcess, Sample } from './contestant.ts'
import { type ThreadTimes, timeByKind } from './thread-cpu.ts'

export interface Metered {
  /** Returns the CPU time so far, by name of the process. */
  cpuUsByProcess(): CpuUsByProcess
  /** Returns that of each thread, by name of the process; omitted for processes that have one thread. */
  threadTimes?(): Readonly<Record<string, ThreadTimes>>
}

/** `cpuUsByProcess` is omitted for a contestant with one process. */
export type Costs = Pick<Sample, 'cpuUs' | 'loadCpuUs' | 'cpuUsByProcess' | 'cpuUsByThread'>

/** Starts a measurement. The returned function returns the CPU time since then. */
export function meterCpu(own: readonly Metered[], load: readonly Metered[]): () => Costs {
  const ownBefore = readAll(own)
  const loadBefore = readAll(load)
  const threadsBefore = allThreads(own)
  return () => {
    const byProcess = difference(ownBefore, readAll(own))
    const loadCpuUs = sum(difference(loadBefore, readAll(load)))
    const threads = Object.entries(allThreads(own)).map(([name, times]) => [
      name,
      timeByKind(threadsBefore[name] ?? new Map(), times),
    ])
    return {
      cpuUs: sum(byProcess),
      loadCpuUs,
      ...(Object.keys(byProcess).length < 2 ? {} : { cpuUsByProcess: byProcess }),
      ...(threads.length === 0 ? {} : { cpuUsByThread: Object.fromEntries(threads) }),
    }
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

/** The threads of processes of the same name are put together. */
function allThreads(sources: readonly Metered[]): Readonly<Record<string, ThreadTimes>> {
  const all: Record<string, ThreadTimes> = {}
  for (const source of sources) {
    for (const [name, times] of Object.entries(source.threadTimes?.() ?? {})) {
      all[name] = new Map([...(all[name] ?? []), ...times])
    }
  }
  return all
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
