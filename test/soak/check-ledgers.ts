/**
 * The rules of delivery, held against what all processes of a soak run saw. Pure: entries in, violations out.
 *
 *   kept         what was acknowledged was received, is still pending, is a dead letter, had a ttl, or was dropped by its
 *                bot's own request, which covers everything that was pushed before that request had ended
 *   ids          an id stands for one update, an update for one id: its key always returns the same; the ids of a
 *                bot have no gap; those of pushes one after the other rise. Only after the server has said that a log was
 *                damaged may a bot's ids skip ahead, by `idsSkippedMin` or more
 *   refused      what was refused as "nothing was stored" is never seen
 *   order        an update is not received for the first time after a later one, of its bot (poll) or of its key (webhook)
 *   repeats      an update comes again where its receiver did not take it, or its getUpdates was not followed by one that
 *                confirmed it; otherwise only if that happened while a fault lasted or shortly before it
 *   whole        every byte is as it was pushed, at the bot it was pushed to, and not after its ttl
 */
import type { LedgerEntry, Letter, Pushing, Received } from './ledger.ts'

/** A removal is written within 20 ms and one write, if the machine has the time for it. */
const removalMs = 3_000
/** From the server's check of the time until the receiver's. */
const deliveryMs = 10_000
/** What the server skips after damage. */
const idsSkippedMin = 1_000_000
const violationsMax = 50

export interface SoakVerdict {
  readonly violations: readonly string[]
  readonly tallies: ReadonlyMap<string, number>
}

interface Fate {
  readonly push: Pushing
  readonly ids: Set<number>
  firstAckMs: number | undefined
  isRefused: boolean
  isUnknown: boolean
  isSeen: boolean
  letter: Letter | undefined
}

/** Entries of each process in their order; the processes in any. */
export function checkLedgers(entries: readonly LedgerEntry[]): SoakVerdict {
  const check = new LedgerCheck(entries)
  check.run()
  return check
}

class LedgerCheck implements SoakVerdict {
  readonly violations: string[] = []
  readonly tallies = new Map<string, number>()
  readonly #entries: readonly LedgerEntry[]
  readonly #fates = new Map<string, Fate>()
  /** By bot, then id: the name. */
  readonly #ids = new Map<number, Map<number, string>>()
  readonly #outages: readonly Outage[]

  constructor(entries: readonly LedgerEntry[]) {
    this.#entries = entries
    this.#outages = outagesOf(entries)
  }

  run(): void {
    for (const entry of this.#entries) if (entry.kind === 'push') this.#pushed(entry)
    for (const entry of this.#entries) this.#note(entry)
    this.#checkKept()
    this.#checkGaps()
    this.#checkLines()
    this.#checkReceipts()
  }

  #pushed(push: Pushing): void {
    this.#tally('pushed')
    this.#fates.set(push.name, {
      push,
      ids: new Set(),
      firstAckMs: undefined,
      isRefused: false,
      isUnknown: false,
      isSeen: false,
      letter: undefined,
    })
  }

  #note(entry: LedgerEntry): void {
    switch (entry.kind) {
      case 'acked':
        return this.#acked(entry)
      case 'refused':
        this.#tally(`refused ${entry.code}`)
        return this.#change(entry.name, (fate) => (fate.isRefused = true))
      case 'unknown':
        this.#tally('answers lost')
        return this.#change(entry.name, (fate) => (fate.isUnknown = true))
      case 'received':
        this.#tally(entry.via === 'left' ? 'left pending' : `received by ${entry.via}`)
        return this.#seen(entry)
      case 'letter':
        this.#tally(`dead letters: ${entry.reason}`)
        return this.#seen(entry)
      case 'fault':
        return this.#tally(`fault: ${entry.fault}`)
      case 'broken':
        return this.#fail(entry.what)
      case 'damaged':
        return this.#tally('times a log was taken for damaged')
      case 'push':
      case 'confirmed':
      case 'dropped':
      case 'ready':
    }
  }

  #acked({ name, id, atMs }: { name: string; id: number; atMs: number }): void {
    this.#tally('acknowledged')
    this.#change(name, (fate) => {
      if (fate.firstAckMs !== undefined) this.#tally('acknowledged again')
      fate.firstAckMs ??= atMs
      this.#is(fate, id)
    })
  }

  #seen(seen: Received | Letter): void {
    const { bot, id, name } = seen
    const fate = this.#fates.get(name)
    if (fate === undefined)
      return this.#fail(`bot ${bot} has ${id}, which nobody pushed so: ${name}`)
    const { push } = fate
    if (push.bot !== bot) this.#fail(`${name} was pushed to ${push.bot} and is at ${bot}`)
    fate.isSeen = true
    if (seen.kind === 'letter') fate.letter = seen
    else this.#checkTime(seen, fate)
    this.#is(fate, id)
  }

  #checkTime({ name, orderingKey, via, atMs }: Received, { push, firstAckMs }: Fate): void {
    if (orderingKey !== push.orderingKey) this.#fail(`${name} has the ordering key ${orderingKey}`)
    if (push.ttlS === undefined || firstAckMs === undefined || via === 'left') return
    if (atMs > firstAckMs + push.ttlS * 1_000 + deliveryMs) this.#fail(`${name} came after its ttl`)
  }

  /** An update and an id belong to each other, and to nobody else. */
  #is(fate: Fate, id: number): void {
    const { name, bot } = fate.push
    const ids = this.#idsOf(bot)
    const other = ids.get(id)
    if (other !== undefined && other !== name) {
      this.#fail(`bot ${bot} has ${id} twice: ${other} and ${name}`)
    }
    ids.set(id, name)
    if (!fate.ids.has(id) && fate.ids.size > 0) {
      this.#fail(`${name} has two ids: ${[...fate.ids, id].join(' and ')}`)
    }
    fate.ids.add(id)
  }

  #checkKept(): void {
    const drops = this.#entries.filter((entry) => entry.kind === 'dropped')
    for (const { push, firstAckMs, isSeen, isRefused, isUnknown } of this.#fates.values()) {
      const { name, bot, isKeyed } = push
      if (isSeen && isRefused && !isUnknown && !isKeyed)
        this.#fail(`${name} was refused and is there`)
      if (firstAckMs === undefined) {
        this.#tally(isSeen ? 'unacknowledged, there' : 'unacknowledged, not there')
        if (isKeyed) this.#fail(`${name} has a key and was never acknowledged`)
      } else if (isSeen) {
        this.#tally('acknowledged, accounted for')
      } else if (drops.some((drop) => drop.bot === bot && push.atMs < drop.toMs)) {
        this.#tally('acknowledged, dropped on request')
      } else if (push.ttlS !== undefined) {
        this.#tally('acknowledged, expired')
      } else {
        this.#fail(`${name} of bot ${bot} was acknowledged and is lost`)
      }
    }
  }

  #checkGaps(): void {
    const isDamaged = this.#entries.some(({ kind }) => kind === 'damaged')
    for (const [bot, ids] of this.#ids) {
      let before: number | undefined
      for (const id of [...ids.keys()].toSorted((left, right) => left - right)) {
        const step = before === undefined ? 1 : id - before
        if (step !== 1) {
          if (isDamaged && step >= idsSkippedMin) this.#tally('ids skipped after damage')
          else this.#fail(`the ids of bot ${bot} step from ${before} to ${id}`)
        }
        before = id
      }
    }
  }

  #checkLines(): void {
    const last = new Map<string, number>()
    for (const { push, ids, firstAckMs } of this.#fates.values()) {
      const [id] = ids
      if (push.line === undefined || firstAckMs === undefined || id === undefined) continue
      const before = last.get(push.line) ?? 0
      if (id <= before) this.#fail(`${push.name} got ${id} after one before it got ${before}`)
      last.set(push.line, id)
    }
  }

  #checkReceipts(): void {
    /** The highest id received so far, of a bot or one of its keys. */
    const highest = new Map<string, number>()
    const received = new Set<string>()
    /** When an update was last received and taken, by bot and id. */
    const taken = new Map<string, number>()
    const confirmedAt = new Map<number, { offset: number; atMs: number }[]>()
    for (const entry of this.#entries) {
      if (entry.kind === 'confirmed') {
        const { bot, offset, atMs } = entry
        confirmedAt.set(bot, [...(confirmedAt.get(bot) ?? []).slice(-200), { offset, atMs }])
      }
      if (entry.kind !== 'received' || entry.via === 'left') continue
      const { bot, id, via, orderingKey, atMs, isTaken } = entry
      const of = `${bot}/${id}`
      const line = via === 'poll' ? `${bot}` : `${bot} ${orderingKey}`
      const isFirst = !received.has(of)
      const before = highest.get(line) ?? 0
      if (isFirst && id < before)
        this.#fail(`${entry.name} (${of}) came after ${before} of ${line}`)
      highest.set(line, Math.max(before, id))
      received.add(of)
      const finalMs =
        via === 'webhook'
          ? taken.get(of)
          : confirmedAt.get(bot)?.find(({ offset }) => offset > id)?.atMs
      if (finalMs !== undefined) this.#repeated(entry, finalMs)
      if (isTaken) taken.set(of, atMs)
    }
  }

  #repeated({ name, via }: Received, finalMs: number): void {
    this.#tally(`repeated by ${via}`)
    const isExcused = this.#outages.some(
      ({ fromMs, toMs }) => finalMs > fromMs - removalMs && finalMs <= toMs,
    )
    if (!isExcused) this.#fail(`${name} came again by ${via} although its removal was done`)
  }

  #change(name: string, change: (fate: Fate) => void): void {
    const fate = this.#fates.get(name)
    if (fate === undefined) this.#fail(`an answer about ${name}, which nobody pushed`)
    else change(fate)
  }

  #idsOf(bot: number): Map<number, string> {
    const known = this.#ids.get(bot)
    if (known !== undefined) return known
    const made = new Map<number, string>()
    this.#ids.set(bot, made)
    return made
  }

  #tally(what: string): void {
    this.tallies.set(what, (this.tallies.get(what) ?? 0) + 1)
  }

  #fail(what: string): void {
    this.#tally('violations')
    if (this.violations.length < violationsMax) this.violations.push(what)
  }
}

interface Outage {
  readonly fromMs: number
  readonly toMs: number
}

/** From the first fault until the server serves again. */
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
