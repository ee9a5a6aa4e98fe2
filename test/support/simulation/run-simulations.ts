/**
 * Runs many seeds in one event loop. Each simulation needs its promises settled between two events, which takes a turn of
 * the loop: many simulations side by side share that turn, and know nothing of each other.
 */

import { type NemesisKind, nemesisKinds } from './nemesis.ts'
import { Simulation } from './simulation.ts'

export interface SimulationResults {
  readonly failed: FailedSeed | undefined
  /** What became of the updates of all seeds. */
  readonly counts: ReadonlyMap<string, number>
}

export interface FailedSeed {
  readonly seed: number
  readonly violation: string
}

const sideBySide = 64

/** Stops at the first seed that breaks a rule. */
export async function runSimulations(seeds: {
  readonly first: number
  readonly count: number
}): Promise<SimulationResults> {
  const counts = new Map<string, number>()
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
      if (violation !== undefined) return { failed: { seed, violation }, counts }
      for (const [name, count] of Object.entries(simulation.counts)) {
        counts.set(name, (counts.get(name) ?? 0) + count)
      }
    }
  }
  return { failed: undefined, counts }
}

/** One seed once more, with all that happens written down. */
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
