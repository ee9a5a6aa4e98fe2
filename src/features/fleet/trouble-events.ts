/**
 * Reports when bots get into trouble and out of it, as far as nothing else does: webhooks and relays report their own failures.
 * Called with the health of every bot every few seconds, whether the bot is in memory or not.
 *
 *     well --trouble for `afterMs`, none reported within `quietMs`--> reported --over for `wellMs`--> well
 *
 * A trouble is over only when the bot is well, because whoever is told that believes it: not when another trouble covers it, and not
 * when the updates that nobody has fetched are gone.
 */
import type { Polls } from '../../delivery/attempts/health.ts'
import type { Health } from '../../kit/states.ts'
import type { NewOperatorEvent, OperatorEventType, ReportEvent } from '../../kit/operator-event.ts'

interface Kind {
  readonly begins: OperatorEventType
  readonly ends: OperatorEventType
  readonly afterMs: number
  readonly wellMs: number
  readonly quietMs: number
  /** @param troubledMs - when the trouble began, monotonic */
  readonly isOver: (seen: SeenHealth, troubledMs: number) => boolean
}

/**
 * A bot that is behind is reported after this time. Chosen: many catch up by themselves, and polls that confirm nothing are
 * noticed meanwhile, which says more.
 */
const behindReportedAfterMs = 3 * 60_000

/** What may be reported. */
export const troubles = ['degraded', 'unpolled'] as const
export type Trouble = (typeof troubles)[number]

const kinds: Readonly<Record<Trouble, Kind>> = {
  // All words but `behind` wait for minutes already. A bot that goes in and out of it is reported once. Chosen: a new worker needs half of
  // this time to notice again that polls confirm nothing.
  degraded: {
    begins: 'bot.degraded',
    ends: 'bot.recovered',
    afterMs: 0,
    wellMs: 10 * 60_000,
    quietMs: 0,
    isOver: ({ health }) => health === undefined || health === 'healthy' || health === 'paused',
  },
  // Chosen: a bot that is started again polls within minutes, and a bot that is often away is reported once an hour.
  unpolled: {
    begins: 'bot.unpolled',
    ends: 'bot.polled',
    afterMs: 4 * 60_000,
    wellMs: 0,
    quietMs: 60 * 60_000,
    isOver: ({ hasWebhook, polls: { isWaiting, lastBeforeMs = Infinity }, nowMs }, troubledMs) =>
      hasWebhook || isWaiting || nowMs - lastBeforeMs > troubledMs,
  },
}

/** What is seen of a bot. */
export interface SeenHealth {
  readonly botId: number
  readonly hasWebhook: boolean
  /** Without what a relay adds. */
  readonly health: Health | undefined
  readonly polls: Pick<Polls, 'isWaiting' | 'lastBeforeMs'>
  /** The sentence, asked for only if it is reported. */
  reason(): string
  readonly nowMs: number
  /** Wall time. */
  readonly timeMs: number
}

interface Entry {
  troubledMs: number
  seenMs: number
  wellMs: number | undefined
  isReported: boolean
  reportedMs: number
}

/** A trouble that was reported and is not over. */
export interface ReportedTrouble {
  readonly trouble: Trouble
  readonly botId: number
  /** Monotonic. */
  readonly atMs: number
}

export class TroubleEvents {
  readonly #report: ReportEvent | undefined
  /** Bots that are in trouble, or were a short time ago. */
  readonly #entries: Readonly<Record<Trouble, Map<number, Entry>>> = {
    degraded: new Map(),
    unpolled: new Map(),
  }
  #hasChanged = false

  constructor(report: ReportEvent | undefined) {
    this.#report = report
  }

  /** Whether a bot is in trouble, or was a short time ago. */
  has(botId: number): boolean {
    // Asked for every bot, every few seconds, and mostly there is none.
    const { degraded, unpolled } = this.#entries
    const isDegraded = degraded.size > 0 && degraded.has(botId)
    return isDegraded || (unpolled.size > 0 && unpolled.has(botId))
  }

  note(seen: SeenHealth): void {
    const trouble = troubleOf(seen)
    for (const name of troubles) {
      if (trouble === name) this.#troubled(name, seen)
      else this.#untroubled(name, seen)
    }
  }

  /** An earlier process has reported a trouble, and its end is still to be reported. */
  restore({ trouble, botId, atMs }: ReportedTrouble, nowMs: number): void {
    if (this.#entries[trouble].has(botId)) return
    const entry = { ...newEntry(nowMs), isReported: true, reportedMs: Math.min(atMs, nowMs) }
    this.#entries[trouble].set(botId, entry)
  }

  /** Returns all troubles that were reported and are not over, if they are others than the last time. */
  takeReported(): readonly ReportedTrouble[] | undefined {
    if (!this.#hasChanged) return undefined
    this.#hasChanged = false
    return troubles.flatMap((trouble) =>
      [...this.#entries[trouble]]
        .filter(([, { isReported }]) => isReported)
        .map(([botId, { reportedMs }]) => ({ trouble, botId, atMs: reportedMs })),
    )
  }

  /** Forgets the bots that are selected. */
  forget(isGone: (botId: number) => boolean): void {
    for (const entries of Object.values(this.#entries)) {
      for (const botId of entries.keys()) if (isGone(botId)) entries.delete(botId)
    }
  }

  /** Forgets bots that are not seen any more, because they were removed. */
  sweep(nowMs: number): void {
    for (const entries of Object.values(this.#entries)) {
      for (const [botId, { seenMs }] of entries) {
        if (nowMs - seenMs > unseenForMs) entries.delete(botId)
      }
    }
  }

  #troubled(name: Trouble, seen: SeenHealth): void {
    const { botId, nowMs } = seen
    const { begins, afterMs: afterTroubleMs, quietMs } = kinds[name]
    const afterMs = seen.health === 'behind' ? behindReportedAfterMs : afterTroubleMs
    const entry = this.#entries[name].get(botId) ?? newEntry(nowMs)
    this.#entries[name].set(botId, entry)
    if (entry.wellMs !== undefined && !entry.isReported) entry.troubledMs = nowMs
    entry.wellMs = undefined
    entry.seenMs = nowMs
    const isDue = nowMs - entry.troubledMs >= afterMs && nowMs - entry.reportedMs >= quietMs
    if (entry.isReported || !isDue) return
    entry.isReported = true
    entry.reportedMs = nowMs
    this.#hasChanged = true
    this.#report?.({ ...eventOf(begins, seen), reason: seen.reason() })
  }

  #untroubled(name: Trouble, seen: SeenHealth): void {
    const { botId, nowMs } = seen
    const entry = this.#entries[name].get(botId)
    if (entry === undefined) return
    const { ends, wellMs, quietMs, isOver } = kinds[name]
    entry.seenMs = nowMs
    if (entry.isReported && !isOver(seen, entry.troubledMs)) {
      entry.wellMs = undefined
      return
    }
    entry.wellMs ??= nowMs
    if (entry.isReported && nowMs - entry.wellMs >= wellMs) {
      entry.isReported = false
      this.#hasChanged = true
      this.#report?.(eventOf(ends, seen))
    }
    if (!entry.isReported && nowMs - entry.reportedMs >= quietMs) {
      this.#entries[name].delete(botId)
    }
  }
}

/** A bot that was not seen for this long was removed, or its shard has left. Chosen: far more than a round over all bots takes. */
export const unseenForMs = 10 * 60_000

function newEntry(nowMs: number): Entry {
  return {
    troubledMs: nowMs,
    seenMs: nowMs,
    wellMs: undefined,
    isReported: false,
    reportedMs: Number.NEGATIVE_INFINITY,
  }
}

function troubleOf({ hasWebhook, health }: SeenHealth): Trouble | undefined {
  if (health === 'unpolled') return 'unpolled'
  // Failures of attempts are told by `webhook.failing`.
  return health === 'behind' || (health === 'degraded' && !hasWebhook) ? 'degraded' : undefined
}

function eventOf(type: OperatorEventType, { botId, timeMs }: SeenHealth): NewOperatorEvent {
  return { type, timeMs, botId }
}
