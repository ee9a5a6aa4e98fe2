/** Runs one case and ends all that it started. A case that fails or hangs gets a result that says so. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { alternate, type AlternateOptions, type Alternated } from './alternate.ts'
import type { CaseResult } from './case-result.ts'
import type { BenchCase, CaseContext, Contestant, Sample } from './contestant.ts'
import type { CpuProfile } from './inspected-process.ts'
import { inSources } from './source-place.ts'

export interface RunOptions extends AlternateOptions {
  readonly workers: number
  readonly isProfiled: boolean
  /** Whether cases run at the given pace, even if they have their own. */
  readonly isQuick?: boolean
  /** The program of another build, which runs instead of the yardsticks. */
  readonly against?: string | undefined
  /** Whether targets are checked. */
  readonly isJudged: boolean
  readonly commit: string
}

export interface CaseRun {
  readonly result: CaseResult
  /** With the frames of source files instead of bundles. */
  readonly profiles: readonly CpuProfile[]
}

/** A case may take this long, plus `roundMsMax` for each round; no case comes near that. */
const caseMsMax = 300_000
const roundMsMax = 60_000
const ownMainFile = fileURLToPath(new URL('../src/main.js', import.meta.url))

export async function runCase(benchCase: BenchCase, options: RunOptions): Promise<CaseRun> {
  const { name, title, operation, targets, charted } = benchCase
  const described = {
    name,
    title,
    operation,
    targets: options.isJudged ? targets : [],
    charted,
    commit: options.commit,
  }
  try {
    const { rows, profiles } = await measured(benchCase, options)
    if (options.isProfiled && profiles.length === 0) throw new Error('it recorded no profile')
    return {
      result: { ...described, rows, error: undefined },
      profiles: profiles.map((each) => inSources(each)),
    }
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error)
    return { result: { ...described, rows: [], error: text }, profiles: [] }
  }
}

async function measured(benchCase: BenchCase, options: RunOptions): Promise<Alternated> {
  const directory = await mkdtemp(join(tmpdir(), 'postbote-bench-'))
  const closings: (() => Promise<void>)[] = [() => rm(directory, { recursive: true, force: true })]
  const { against, isProfiled, workers } = options
  const context: CaseContext = {
    directory,
    workers,
    isAlone: isProfiled || against !== undefined,
    isProfiled,
    mainFile: ownMainFile,
    atEnd: (close) => closings.push(close),
  }
  const msMax = benchCase.msMax ?? caseMsMax + options.rounds * roundMsMax
  const { promise: late, cancel } = lateAfter(msMax)
  try {
    return await Promise.race([
      late,
      openAll(benchCase, context, against).then((opened) =>
        alternate(
          benchCase,
          opened,
          options.isQuick === true ? options : { ...options, ...benchCase.pace },
        ),
      ),
    ])
  } finally {
    cancel()
    await closeAll(closings)
  }
}

async function openAll(
  benchCase: BenchCase,
  context: CaseContext,
  against: string | undefined,
): Promise<readonly Contestant[]> {
  const contestants = await benchCase.open(context)
  if (against === undefined) return contestants
  const directory = await mkdtemp(join(context.directory, 'against-'))
  const others = await benchCase.open({ ...context, directory, mainFile: against })
  return [...contestants, ...others.map((other) => new OtherBuild(other))]
}

class OtherBuild implements Contestant {
  readonly name: string
  readonly #other: Contestant

  constructor(other: Contestant) {
    this.name = `${other.name}, the other build`
    this.#other = other
  }

  run(durationMs: number): Promise<Sample> {
    return this.#other.run(durationMs)
  }
}

function lateAfter(ms: number): {
  readonly promise: Promise<never>
  readonly cancel: () => void
} {
  let timer: NodeJS.Timeout | undefined
  const promise = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`it was not over after ${ms} ms`)), ms)
  })
  return { promise, cancel: () => clearTimeout(timer) }
}

/** Runs all of them, the last one first, even if one fails. */
async function closeAll(closings: readonly (() => Promise<void>)[]): Promise<void> {
  for (const close of closings.toReversed()) {
    try {
      await close()
    } catch (error) {
      process.stderr.write(`could not clean up: ${String(error)}\n`)
    }
  }
}
