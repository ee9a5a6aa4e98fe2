/** Draws the next fault from the seed of a run, until its counts or its time are used up. */
import type { Luck } from '../support/simulation/luck.ts'

/**
 * kill: SIGKILL of a worker, of the primary, or of all. stop: SIGSTOP of a worker, SIGCONT later. term: SIGTERM and a new
 * start. reload: SIGHUP. power: a power loss. disk: writes or syncs fail for a while.
 */
export const faultKinds = ['kill', 'stop', 'term', 'reload', 'power', 'disk'] as const
export type FaultKind = (typeof faultKinds)[number]

export interface FaultPlanOptions {
  readonly luck: Luck
  readonly kinds: readonly FaultKind[]
  /** The most kills; undefined for as many as the time allows. */
  readonly kills: number | undefined
  readonly powerLosses: number | undefined
}

/** How often each kind occurs if it has no count. */
const weights: Readonly<Record<FaultKind, number>> = {
  kill: 6,
  stop: 1,
  term: 1,
  reload: 1,
  power: 3,
  disk: 1,
}
/** How many counted faults occur for one of each other kind. */
const countedPerOther = 40

export class FaultPlan {
  readonly #luck: Luck
  readonly #kinds: readonly FaultKind[]
  readonly #left = new Map<FaultKind, number>()

  constructor({ luck, kinds, kills, powerLosses }: FaultPlanOptions) {
    this.#luck = luck
    this.#kinds = kinds
    if (kills !== undefined) this.#left.set('kill', kills)
    if (powerLosses !== undefined) this.#left.set('power', powerLosses)
  }

  /** Returns the next fault; undefined when all counted faults have occurred. Without counts there is always another one. */
  next(): FaultKind | undefined {
    const counted = [...this.#left.values()].reduce((sum, left) => sum + left, 0)
    if (this.#left.size > 0 && counted === 0) return undefined
    const drawn = this.#draw(this.#kinds.map((kind) => [kind, this.#weightOf(kind, counted)]))
    const left = this.#left.get(drawn)
    if (left !== undefined) this.#left.set(drawn, left - 1)
    return drawn
  }

  #weightOf(kind: FaultKind, counted: number): number {
    if (this.#left.size === 0) return weights[kind]
    return this.#left.get(kind) ?? (counted * weights[kind]) / countedPerOther
  }

  #draw(weighted: readonly (readonly [FaultKind, number])[]): FaultKind {
    let at = this.#luck.next() * weighted.reduce((sum, [, weight]) => sum + weight, 0)
    for (const [kind, weight] of weighted) {
      at -= weight
      if (at < 0) return kind
    }
    throw new Error('no kind of fault has any weight')
  }
}
