/**
 * The conflicts of the polls of one queue: refusals with 409, or takeovers. A single one is a program that replaces another. More
 * of them, one soon after the other, are two programs that poll at the same time.
 */
import type { PollFight } from '../delivery/attempts/health.ts'

/** A takeover belongs to those before it if it comes this soon after the last. Chosen: the pace of refusals delays one by 3 s. */
const takeoversApartMs = 10_000
/** The same for refusals. Chosen: a program that got 409 calls again within a minute, and the other's poll may last 50 s. */
const refusalsApartMs = 60_000
/** Conflicts of the last minute are counted up to this number. Chosen: more tell an operator nothing. */
const conflictsCountedMax = 100
const minuteMs = 60_000

export class PollFights {
  readonly #kind: PollFight['kind']
  readonly #apartMs: number
  /** The first one of those that belong together, and the last ones; monotonic. */
  #firstMs = 0
  #lastMs = Number.NEGATIVE_INFINITY
  readonly #recent: number[] = []

  constructor(kind: PollFight['kind']) {
    this.#kind = kind
    this.#apartMs = kind === 'refusal' ? refusalsApartMs : takeoversApartMs
  }

  note(nowMs: number): void {
    if (this.#isOver(nowMs)) {
      this.#recent.length = 0
      this.#firstMs = nowMs
    }
    this.#lastMs = nowMs
    this.#recent.push(nowMs)
    if (this.#recent.length > conflictsCountedMax) this.#recent.shift()
  }

  /** Returns undefined if there is no more than one conflict, or the last one is long ago. */
  at(nowMs: number): PollFight | undefined {
    const forMs = this.#lastMs - this.#firstMs
    if (forMs === 0 || this.#isOver(nowMs)) return undefined
    return {
      kind: this.#kind,
      forMs,
      lastMinute: this.#recent.filter((ms) => nowMs - ms <= minuteMs).length,
    }
  }

  #isOver(nowMs: number): boolean {
    return nowMs - this.#lastMs > this.#apartMs
  }
}
