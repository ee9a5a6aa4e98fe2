/**
 * Runs many seeds in one event loop. Each simulation needs its promises settled between two events, which takes one turn
 * of the loop. Many independent simulations share that turn.
 */
import { type NemesisKind, nemesisKinds } from './nemesis.ts'
import { Simulation } from './simulation.ts'

export interface SimulationResults {
  readonly failed: FailedSeed | undefined
  /** How often each kind of event happened, over all seeds. */
  readonly tallies: ReadonlyMap<string, number>
}

export interface FailedSeed {
  readonly seed: number
  readonly violation: string
}

const sideBySide = 64

/** Runs the seeds and stops at the first one that breaks a rule. */
export async function runSimulations(seeds: {
  readonly first: number
  readonly count: number
}): Promise<SimulationResults> {
  const tallies = new Map<string, number>()
  const running = new Map<number, Simulation>()
  const endSeed = seeds.first + seeds.count
  let nextSeed = seeds.first
  const fill = (): void => {
    for (; running.size < sideBySide && nextSeed < endSeed; nextSeed++) {
      running.set(nextSeed, new Simulation({ seed: nextSeed }))
    }
  }
  for (fill(); running.size > 0; fill()) {
    await turn()
    for (const [seed, simulation] of running) {
      if (simulation.step()) continue
      running.delete(seed)
      const { violation } = simulation
      if (violation !== undefined) return { failed: { seed, violation }, tallies }
      for (const [what, count] of simulation.tallies) {
        tallies.set(what, (tallies.get(what) ?? 0) + count)
      }
    }
  }
  return { failed: undefined, tallies }
}

/** Runs one seed again and logs all its events. */
export async function replay(
  seed: number,
  without: ReadonlySet<NemesisKind> = new Set(),
): Promise<{ readonly violation: string | undefined; readonly log: readonly string[] }> {
  const log: string[] = []
  const simulation = new Simulation({ seed, without, log: (text) => void log.push(text) })
  do await turn()
  while (simulation.step())
  return { violation: simulation.violation, log }
}

/** Leaves out one kind of nemesis after the other, as long as the seed still fails without it. */
export async function shrink(seed: number): Promise<ReadonlySet<NemesisKind>> {
  const without = new Set<NemesisKind>()
  for (const kind of nemesisKinds) {
    without.add(kind)
    if ((await replay(seed, without)).violation === undefined) without.delete(kind)
  }
  return without
}

function turn(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve))
}
