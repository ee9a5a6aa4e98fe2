/** A run of kills: each boundary and each victim in turn, in an order that the seed draws. */
import type { EndingTest } from '../support/server/server.ts'
import { Luck } from '../support/simulation/luck.ts'
import { boundaries, type Boundary, RelayWorld, type RelayWorldOptions } from './relay-world.ts'

export interface RelayRunOptions extends Pick<RelayWorldOptions, 'kind'> {
  readonly kills: number
  /** No kill begins later. */
  readonly minutes?: number
  readonly seed: number
  readonly log: (line: string) => void
}

export interface RelayRun {
  readonly kind: RelayWorldOptions['kind']
  readonly seed: number
  readonly seconds: number
  readonly kills: readonly { readonly boundary: Boundary; readonly victim: string }[]
  readonly made: number
  readonly received: number
  readonly receivedAgain: number
  /** How often the origin refused a poll, because another one came. */
  readonly conflicts: number
  readonly violations: readonly string[]
}

export async function runRelayKills(t: EndingTest, options: RelayRunOptions): Promise<RelayRun> {
  const { kind, kills: count, minutes = Infinity, seed, log } = options
  const startMs = performance.now()
  const luck = new Luck(seed)
  const world = await RelayWorld.start(t, { kind, luck })
  const all = boundaries.flatMap((boundary) =>
    world.target.victims.map((victim) => ({ boundary, victim })),
  )
  const kills: { readonly boundary: Boundary; readonly victim: string }[] = []
  let round: typeof kills = []
  try {
    const endMs = startMs + minutes * 60_000
    while (kills.length < count && performance.now() < endMs) {
      if (round.length === 0) round = luck.shuffled(all)
      const next = round.pop()
      if (next === undefined) break
      const atS = ((performance.now() - startMs) / 1_000).toFixed(1)
      log(`${atS} s, kill ${kills.length + 1}: ${next.boundary}, ${next.victim}`)
      await world.round(next.boundary, next.victim)
      kills.push(next)
    }
  } catch (error) {
    world.violations.push(error instanceof Error ? String(error.stack) : 'something was thrown')
    log(world.target.server().output())
  }
  const { counts, conflicts, made } = await world.end()
  const seconds = Math.round((performance.now() - startMs) / 1_000)
  const { violations } = world
  return { kind, seed, seconds, kills, made, ...counts, conflicts, violations }
}
