/**
 * Runs the contestants of a case in turn, A B C A B C ..., so that whatever else the machine does meets all of them,
 * and takes medians. A ratio is the median of the ratios within each round, not the ratio of the medians.
 */
import type { BenchCase, Contestant, Sample } from './contestant.ts'
import type { CpuProfile } from './inspected-process.ts'

export interface Row {
  readonly name: string
  readonly operationsPerSecond: number
  readonly cpuUsPerOperation: number
  readonly loadCpuUsPerOperation: number
  /** Ours to this one's, in speed and in CPU per operation; 1 for ours. */
  readonly rateRatio: number
  readonly cpuRatio: number
  readonly residentBytes: number | undefined
  /** Medians of the samples' own. */
  readonly figures: Readonly<Record<string, number>>
  readonly samples: readonly Sample[]
}

export interface CaseResult {
  readonly benchCase: BenchCase
  readonly rows: readonly Row[]
  /** Of ours, without the warm-up. */
  readonly profiles: readonly CpuProfile[]
}

export interface AlternateOptions {
  readonly rounds: number
  readonly durationMs: number
  readonly warmUpMs: number
}

export async function alternate(
  benchCase: BenchCase,
  contestants: readonly Contestant[],
  options: AlternateOptions,
): Promise<CaseResult> {
  const samples = contestants.map((): Sample[] => [])
  for (const contestant of contestants) await contestant.run(options.warmUpMs)
  const profilesBefore = contestants[0]?.profiles?.length ?? 0
  for (let round = 0; round < options.rounds; round++) {
    for (const [index, contestant] of contestants.entries()) {
      samples[index]?.push(await contestant.run(options.durationMs))
    }
  }
  const own = samples[0] ?? []
  return {
    benchCase,
    profiles: contestants[0]?.profiles?.slice(profilesBefore) ?? [],
    rows: contestants.map((contestant, index) => rowOf(contestant, samples[index] ?? [], own)),
  }
}

function rowOf(contestant: Contestant, samples: readonly Sample[], own: readonly Sample[]): Row {
  return {
    name: contestant.name,
    operationsPerSecond: median(samples.map(rate)),
    cpuUsPerOperation: median(samples.map(cpu)),
    loadCpuUsPerOperation: median(samples.map((sample) => sample.loadCpuUs / sample.operations)),
    rateRatio: median(own.map((sample, round) => ratio(sample, samples[round], rate))),
    cpuRatio: median(own.map((sample, round) => ratio(sample, samples[round], cpu))),
    residentBytes: contestant.residentBytes?.(),
    figures: figuresOf(samples),
    samples,
  }
}

function figuresOf(samples: readonly Sample[]): Record<string, number> {
  const names = Object.keys(samples[0]?.figures ?? {})
  return Object.fromEntries(
    names.map((name) => [
      name,
      median(samples.map(({ figures }) => figures?.[name] ?? Number.NaN)),
    ]),
  )
}

function rate(sample: Sample): number {
  return sample.operations / sample.seconds
}

function cpu(sample: Sample): number {
  return sample.cpuUs / sample.operations
}

function ratio(own: Sample, other: Sample | undefined, of: (sample: Sample) => number): number {
  return other === undefined ? Number.NaN : of(own) / of(other)
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? Number.NaN)) / 2
}
