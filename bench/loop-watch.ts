/**
 * How long the event loops of a server's processes were blocked, separated by cause.
 *
 * In each process a timer of 1 ms measures how late it is. On a busy machine that alone says little, so each gap also has
 * the time for which its thread really ran (/proc/<pid>/task/<tid>/schedstat), and garbage collections are subtracted
 * from both. The server's own gauge of the delay (`monitorEventLoopDelay`) can do neither, but costs nothing.
 */
import type { PerformanceEntry } from 'node:perf_hooks'
import type { InspectedProcess } from './inspected-process.ts'

export interface LoopHolds {
  /** The longest gap, whatever the cause. */
  readonly wallMsMax: number
  /** The longest period of JavaScript and native code on the main thread, without garbage collections. */
  readonly busyMsMax: number
  readonly gcMsMax: number
  /** Gaps in which the thread was busy for more than 20 ms. */
  readonly overBound: number
}

/** Starts to watch these processes. The returned function returns the holds since the last call, and starts anew. */
export async function watchLoops(
  processes: readonly InspectedProcess[],
): Promise<() => Promise<LoopHolds>> {
  await Promise.all(processes.map((each) => each.evaluate(`(${beginWatch.toString()})()`)))
  return async () => {
    const all = await Promise.all(
      processes.map((each) => each.evaluate<LoopHolds>('globalThis.takeLoopHolds()')),
    )
    return {
      wallMsMax: Math.max(...all.map(({ wallMsMax }) => wallMsMax)),
      busyMsMax: Math.max(...all.map(({ busyMsMax }) => busyMsMax)),
      gcMsMax: Math.max(...all.map(({ gcMsMax }) => gcMsMax)),
      overBound: all.reduce((sum, { overBound }) => sum + overBound, 0),
    }
  }
}

/** Runs in the watched process, as text: it must not use anything else of this file. */
function beginWatch(): void {
  const { PerformanceObserver } = process.getBuiltinModule('node:perf_hooks')
  const { readFileSync } = process.getBuiltinModule('node:fs')
  const statPath = `/proc/self/task/${process.pid}/schedstat`
  const tookMsMin = 4
  const boundMs = 20
  const watch: {
    gaps: { startMs: number; endMs: number; cpuMs: number }[]
    gcs: PerformanceEntry[]
  } = {
    gaps: [],
    gcs: [],
  }
  const cpuMs = (): number => Number.parseInt(readFileSync(statPath, 'latin1'), 10) / 1e6
  const observer = new PerformanceObserver((list) => watch.gcs.push(...list.getEntries()))
  observer.observe({ entryTypes: ['gc'] })
  let lastMs = performance.now()
  let lastCpuMs = cpuMs()
  setInterval(() => {
    const nowMs = performance.now()
    const nowCpuMs = cpuMs()
    if (nowMs - lastMs > tookMsMin) {
      watch.gaps.push({ startMs: lastMs, endMs: nowMs, cpuMs: nowCpuMs - lastCpuMs })
    }
    lastMs = nowMs
    lastCpuMs = nowCpuMs
  }, 1).unref()
  const takeLoopHolds = (): LoopHolds => {
    const { gaps, gcs } = watch
    watch.gaps = []
    watch.gcs = []
    const busy = gaps.map((gap) => {
      const within = gcs.filter(
        ({ startTime }) => startTime >= gap.startMs && startTime < gap.endMs,
      )
      return gap.cpuMs - within.reduce((sum, { duration }) => sum + duration, 0)
    })
    return {
      wallMsMax: Math.max(0, ...gaps.map(({ startMs, endMs }) => endMs - startMs)),
      busyMsMax: Math.max(0, ...busy),
      gcMsMax: Math.max(0, ...gcs.map(({ duration }) => duration)),
      overBound: busy.filter((ms) => ms > boundMs).length,
    }
  }
  Object.assign(globalThis, { takeLoopHolds })
}
