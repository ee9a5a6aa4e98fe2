/**
 * Checks what all processes of a soak run saw against the rules of delivery. Pure: entries in, violations out.
 *
 *   kept         an acknowledged update was received, is still pending, is a dead letter, had a ttl, or was dropped by its
 *                bot's own request, which covers all updates that were pushed before that request had ended
 *   ids          an id stands for one update, and an update for one id: its key always returns the same id; the ids of a
 *                bot have no gap; those of sequential pushes rise. A bot's ids may skip ahead, by `tornSkippedIds` or more,
 *                only after the server has reported a damaged log or a torn end of one
 *   refused      an update that was refused as "nothing was stored" is never seen
 *   whole        every byte is as it was pushed, at the bot to which it was pushed, and not after its ttl
 *
 * check-receipts.ts checks order and repetition.
 */
import { tornSkippedIds } from '../../src/shard/id-mark.ts'
import { checkReceipts } from './check-receipts.ts'
import type { LedgerEntry, Letter, Pushing, Received } from './ledger.ts'

/** From the server's check of the time until the receiver's. */
const deliveryMs = 10_000
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
  deadLetter: Letter | undefined
}

/**
 * @param entries - the entries of each process in their order; the processes in any order
 * @param isFinished - whether everything that could be delivered was, and the rest was recorded. Losses of an unfinished
 *   run cannot be determined.
 */
export function checkLedgers(
  entries: readonly LedgerEntry[],
  { isFinished = true }: { readonly isFinished?: boolean } = {},
): SoakVerdict {
  const check = new LedgerCheck(entries)
  check.run(isFinished)
  return check
}

class LedgerCheck implements SoakVerdict {
  readonly violations: string[] = []
  readonly tallies = new Map<string, number>()
  readonly #entries: readonly LedgerEntry[]
  readonly #fates = new Map<string, Fate>()
  /** By bot, then id: the name of the update. */
  readonly #ids = new Map<number, Map<number, string>>()

  constructor(entries: readonly LedgerEntry[]) {
    this.#entries = entries
  }

  run(isFinished: boolean): void {
    for (const entry of this.#entries) if (entry.kind === 'push') this.#pushed(entry)
    for (const entry of this.#entries) this.#note(entry)
    if (isFinished) {
      this.#checkKept()
      this.#checkGaps()
    }
    this.#checkLines()
    checkReceipts(this.#entries, {
      fail: (what) => this.#fail(what),
      tally: (what) => this.#tally(what),
    })
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
      deadLetter: undefined,
    })
  }

  #note(entry: LedgerEntry): void {
    if (entry.kind === 'acked') this.#acked(entry)
    if (entry.kind === 'refused') this.#change(entry.name, (fate) => (fate.isRefused = true))
    if (entry.kind === 'unknown') this.#change(entry.name, (fate) => (fate.isUnknown = true))
    if (entry.kind === 'received' || entry.kind === 'letter') this.#seen(entry)
    if (entry.kind === 'broken') this.#fail(entry.what)
    const what = wordsFor(entry)
    if (what !== undefined) this.#tally(what)
  }

  #acked({ name, id, atMs }: { name: string; id: number; atMs: number }): void {
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
    if (seen.kind === 'letter') fate.deadLetter = seen
    else this.#checkTime(seen, fate)
    this.#is(fate, id)
  }

  #checkTime({ name, orderingKey, via, atMs }: Received, { push, firstAckMs }: Fate): void {
    if (orderingKey !== push.orderingKey) this.#fail(`${name} has the ordering key ${orderingKey}`)
    if (push.ttlS === undefined || firstAckMs === undefined || via === 'left') return
    if (atMs > firstAckMs + push.ttlS * 1_000 + deliveryMs) this.#fail(`${name} came after its ttl`)
  }

  /** Records that an update and an id belong to each other, and to no others. */
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
    const maySkip = this.#entries.some(({ kind }) => kind === 'damaged' || kind === 'torn')
    for (const [bot, ids] of this.#ids) {
      let before: number | undefined
      for (const id of [...ids.keys()].toSorted((left, right) => left - right)) {
        const step = before === undefined ? 1 : id - before
        if (step !== 1) {
          if (maySkip && step > tornSkippedIds) this.#tally('times a bot skipped ids')
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

/** Returns the word under which an entry is counted. */
function wordsFor(entry: LedgerEntry): string | undefined {
  if (entry.kind === 'acked') return 'acknowledged'
  if (entry.kind === 'refused') return `refused: ${entry.code}`
  if (entry.kind === 'unknown') return 'answers lost'
  if (entry.kind === 'received') return `received: ${entry.via}`
  if (entry.kind === 'letter') return `dead letters: ${entry.reason}`
  if (entry.kind === 'fault') return `fault: ${entry.fault}`
  if (entry.kind === 'torn') return 'torn ends of logs'
  return entry.kind === 'damaged' ? 'times a log was taken for damaged' : undefined
}
