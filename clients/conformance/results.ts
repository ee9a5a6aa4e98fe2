/** What a long run collects for its report: one line of JSON for each run of a driver. */
import { appendFileSync } from 'node:fs'
import type { DriverReport } from './job.ts'

/** One run of a driver that conformed. */
export interface ConformanceResult {
  readonly client: string
  readonly name: string
  readonly count: number
  readonly pairsPerS: number
  /** Time of a processor for each pair, in microseconds. It hardly depends on what else the machine does. */
  readonly cpuUs: number
  readonly repetitions: number
  readonly memoryMib: number
}

/** Adds a line to the file that CONFORMANCE_RESULTS names, if it does. */
export function writeResults(run: {
  readonly client: string
  readonly name: string
  readonly count: number
  readonly report: DriverReport
}): void {
  const file = process.env['CONFORMANCE_RESULTS']
  if (file === undefined) return
  const { client, name, count, report } = run
  const pushS = Math.max(1, report.done?.pushMs ?? 0) / 1_000
  const result: ConformanceResult = {
    client,
    name,
    count,
    pairsPerS: Math.round(count / pushS),
    cpuUs: Math.round((report.cpuMs * 1_000) / count),
    repetitions: report.retries.length,
    memoryMib: Math.round(report.memoryBytesMax / 2 ** 20),
  }
  appendFileSync(file, `${JSON.stringify(result)}\n`)
}
