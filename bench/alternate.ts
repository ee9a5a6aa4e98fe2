/**
 * Runs the contestants of a case in turn, A B C A B C ..., so that other load on the machine affects all of them alike,
 * and computes medians. A ratio is the median of the ratios within each round, not the ratio of the medians.
 */
import type { Row } from './case-result.ts'
import type { BenchCase, Contestant, CpuUsByProcess, Sample } from './contestant.ts'
import type { CpuProfile } from './inspected-process.ts'

export interface Alternated {
  readonly rows: readonly Row[]
  /** The profiles of our server, without the warm-up. */
  readonly profiles: readonly CpuProfile[]
}

export interface AlternateOptions {
  readonly rounds: number
  readonly durationMs: number
  readonly warmUpMs: number
}

const warmProgramMs = 100

export async function alternate(
  { freshRoundsMax = Number.POSITIVE_INFINITY }: Pick<BenchCase, 'freshRoundsMax'>,
  contestants: readonly Contestant[],
  options: AlternateOptions,
): Promise<Alternated> {
  const samples = contestants.map((): Sample[] => [])
  if (freshRoundsMax === Number.POSITIVE_INFINITY) await warmUp(contestants, options.warmUpMs)
  const rounds = Math.min(options.rounds, freshRoundsMax)
  const profilesBefore = contestants[0]?.profiles?.length ?? 0
  for (let round = 0; round < rounds; round++) {
    for (const [index, contestant] of contestants.entries()) {
      samples[index]?.push(await contestant.run(options.durationMs))
    }
  }
  const own = samples[0] ?? []
  const profiles = contestants[0]?.profiles ?? []
  return {
    profiles: profiles.slice(profilesBefore),
    rows: contestants.map((contestant, index) => rowOf(contestant, samples[index] ?? [], own)),
  }
}

async function warmUp(contestants: readonly Contestant[], durationMs: number): Promise<void> {
  for (const contestant of contestants) {
    await contestant.run(contestant.isWarm === true ? warmProgramMs : durationMs)
  }
}

function rowOf(contestant: Contestant, samples: readonly Sample[], own: readonly Sample[]): Row {
  return {
    name: contestant.name,
    operationsPerSecond: median(samples.map(rate)),
    cpuUsPerOperation: median(samples.map(cpu)),
    cpuUsByProcess: mediansByName(samples, (sample) => sample.cpuUsByProcess),
    cpuUsByThread: byThread(samples),
    loadCpuUsPerOperation: median(samples.map((sample) => sample.loadCpuUs / sample.operations)),
    loadCpus: median(samples.map(({ loadCpuUs, seconds }) => loadCpuUs / seconds / 1e6)),
    rateRatio: median(own.map((sample, round) => ratio(sample, samples[round], rate))),
    cpuRatio: median(own.map((sample, round) => ratio(sample, samples[round], cpu))),
    residentBytes: contestant.residentBytes?.(),
    figures: figuresOf(samples),
    samples,
  }
}

/** Of an operation. */
function mediansByName(
  samples: readonly Sample[],
  of: (sample: Sample) => CpuUsByProcess | undefined,
): CpuUsByProcess {
  const names = new Set(samples.flatMap((each) => Object.keys(of(each) ?? {})))
  return Object.fromEntries(
    [...names].map((name) => [
      name,
      median(samples.map((each) => (of(each)?.[name] ?? 0) / each.operations)),
    ]),
  )
}

function byThread(samples: readonly Sample[]): NonNullable<Row['cpuUsByThread']> {
  const names = new Set(samples.flatMap((each) => Object.keys(each.cpuUsByThread ?? {})))
  return Object.fromEntries(
    [...names].map((name) => [
      name,
      mediansByName(samples, (sample) => sample.cpuUsByThread?.[name]),
    ]),
  )
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
