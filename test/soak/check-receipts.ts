/**
 * Checks order and repetition, from what the receivers saw in the order in which they saw it.
 *
 *   order     an update is not received for the first time after a later one of its bot (poll) or of its key (webhook)
 *   repeats   an update is received again if its receiver did not take it, or if no later getUpdates confirmed it;
 *             otherwise only if that happened during a fault or shortly before it
 */
import type { LedgerEntry, Received } from './ledger.ts'

/** A removal is written within 20 ms and one write, if the machine is not too busy. */
const removalMs = 3_000
/** More confirmations than a bot makes while a removal can still be lost. */
const confirmationsKept = 500

export interface ReceiptReport {
  fail(what: string): void
  tally(what: string): void
}

interface Confirmation {
  readonly offset: number
  readonly atMs: number
}

interface Outage {
  readonly fromMs: number
  readonly toMs: number
}

export function checkReceipts(entries: readonly LedgerEntry[], report: ReceiptReport): void {
  const check = new ReceiptCheck(outagesOf(entries), report)
  for (const entry of entries) {
    if (entry.kind === 'confirmed') check.confirmed(entry.bot, entry)
    if (entry.kind === 'received' && entry.via !== 'left') check.received(entry)
  }
}

class ReceiptCheck {
  readonly #outages: readonly Outage[]
  readonly #report: ReceiptReport
  /** The highest id received so far, for a bot or one of its keys. */
  readonly #highest = new Map<string, number>()
  readonly #received = new Set<string>()
  /** When a webhook last took an update. */
  readonly #takenMs = new Map<string, number>()
  readonly #confirmations = new Map<number, Confirmation[]>()

  constructor(outages: readonly Outage[], report: ReceiptReport) {
    this.#outages = outages
    this.#report = report
  }

  confirmed(bot: number, { offset, atMs }: Confirmation): void {
    const known = this.#confirmations.get(bot) ?? []
    this.#confirmations.set(bot, known)
    known.push({ offset, atMs })
    if (known.length > confirmationsKept) known.shift()
  }

  received(entry: Received): void {
    const of = `${entry.bot}/${entry.id}`
    this.#checkOrder(entry, of)
    this.#received.add(of)
    const removedMs = this.#removedMs(entry, of)
    if (removedMs !== undefined) this.#repeated(entry, removedMs)
    if (entry.isTaken) this.#takenMs.set(of, entry.atMs)
  }

  #checkOrder({ bot, id, via, orderingKey, name }: Received, of: string): void {
    const line = via === 'poll' ? `${bot}` : `${bot} ${orderingKey}`
    const before = this.#highest.get(line) ?? 0
    if (!this.#received.has(of) && id < before) {
      this.#report.fail(`${name} (${of}) came after ${before} of ${line}`)
    }
    this.#highest.set(line, Math.max(before, id))
  }

  /** Returns when its receiver let the server know that it has the update. */
  #removedMs({ bot, id, via }: Received, of: string): number | undefined {
    if (via === 'webhook') return this.#takenMs.get(of)
    return this.#confirmations.get(bot)?.find(({ offset }) => offset > id)?.atMs
  }

  #repeated({ name, via }: Received, removedMs: number): void {
    this.#report.tally(`repeated by ${via}`)
    const isExcused = this.#outages.some(
      ({ fromMs, toMs }) => removedMs > fromMs - removalMs && removedMs <= toMs,
    )
    if (!isExcused) this.#report.fail(`${name} came again by ${via} although its removal was done`)
  }
}

/** An outage lasts from the first fault until the server serves again. */
function outagesOf(entries: readonly LedgerEntry[]): readonly Outage[] {
  const outages: Outage[] = []
  let fromMs: number | undefined
  for (const entry of entries) {
    if (entry.kind === 'fault') fromMs ??= entry.atMs
    if (entry.kind === 'ready' && fromMs !== undefined) {
      outages.push({ fromMs, toMs: entry.atMs })
      fromMs = undefined
    }
  }
  if (fromMs !== undefined) outages.push({ fromMs, toMs: Number.POSITIVE_INFINITY })
  return outages
}
