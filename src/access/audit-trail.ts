/**
 * The calls that changed something, as shard 0 stores them: the last `auditCallsMax`. Its owner does all of this. Other workers
 * send theirs (access/audit-writer.ts), and ask for what is stored (features/keys/audit-routes.ts).
 *
 * The ids of all calls are in memory, so that a call that is stored again counts once and the oldest are found without a read.
 */
import { PostboteError } from '../kit/errors.ts'
import { lookCostMs, type LookPayer } from '../queue/kept/look-payer.ts'
import { type AuditRecord, firstAuditId, type RecordedCall } from '../shard/records/audit-record.ts'
import type { OperationOf } from '../shard/operations.ts'
import type { Shard } from '../shard/shard.ts'

/** Which calls are wanted. */
export interface AuditQuestion {
  /** From this wall time on, in milliseconds, and before that one. */
  readonly sinceMs?: number | undefined
  readonly untilMs?: number | undefined
  /** The id of an access key, or `admin` for the admin key. */
  readonly key?: string | undefined
  readonly operation?: string | undefined
  readonly botId?: number | undefined
  /** Only calls before the one with this id. */
  readonly before?: string | undefined
  readonly limit: number
}

/**
 * The server keeps this many calls that changed something, some 300 bytes each and at most 1 KiB. Chosen: as many as events; a
 * fleet that is changed 100 times a day has those of three months.
 */
export const auditCallsMax = 10_000
/** Calls are read from disk in steps of this size. Chosen: some 60 KB, whose decoding takes 1 ms. */
const auditReadMax = 200
/** Above all ids. */
const auditIdEnd = 'f'.repeat(20)

interface Loaded {
  readonly shard: unknown
  /** In the order of time, but for calls whose storing had to wait. */
  readonly ids: Promise<Set<string>>
}

/** The recorded calls of shard 0. All methods throw SHARD_BROKEN or STORE_UNAVAILABLE if it is not served here. */
export class AuditTrail {
  /** Returns shard 0. Throws SHARD_BROKEN or STORE_UNAVAILABLE if it is not open here. */
  readonly #shard: () => Pick<Shard, 'commit' | 'lists' | 'lease'>
  #loaded: Loaded | undefined

  constructor(shard: () => Pick<Shard, 'commit' | 'lists' | 'lease'>) {
    this.#shard = shard
  }

  /** The shard was opened or read anew: what is in memory may be outdated. */
  reset(): void {
    this.#loaded = undefined
  }

  /** Stores calls, and removes the oldest above the bound. Resolves when they survive a power loss. */
  async append(calls: readonly RecordedCall[]): Promise<void> {
    const shard = this.#shard()
    try {
      const ids = await this.#ids()
      for (const { id } of calls) ids.add(id)
      const excess = firstOf(ids, ids.size - auditCallsMax)
      for (const id of excess) ids.delete(id)
      const operations: OperationOf<'audit'>[] = [
        ...calls.map(({ id, record }) => ({ kind: 'audit' as const, id, record })),
        ...excess.map((id) => ({ kind: 'audit' as const, id, record: null })),
      ]
      await shard.commit(operations, { waited: true })
    } catch (error) {
      // Whether it was written is unknown.
      this.reset()
      throw error
    }
  }

  /** Returns the calls that are wanted, the last ones first. */
  async read(question: AuditQuestion, payer?: LookPayer): Promise<readonly RecordedCall[]> {
    const { sinceMs = 0, untilMs = Infinity, before = auditIdEnd, limit } = question
    const { lists, lease } = this.#shard()
    const from = firstAuditId(sinceMs)
    const until = firstAuditId(untilMs)
    const found: RecordedCall[] = []
    let next: string | undefined = before < until ? before : until
    while (next !== undefined && next > from && found.length < limit) {
      await payer?.turn()
      const page = await lists.calls({ from, before: next, limit: auditReadMax })
      payer?.charge(lookCostMs([], page.calls.length))
      found.push(...page.calls.filter(({ record }) => isWanted(record, question)))
      ;({ next } = page)
    }
    // Another node may have recorded calls since.
    if (!lease.isValid()) throw new PostboteError('STORE_UNAVAILABLE')
    return found.slice(0, limit)
  }

  #ids(): Promise<Set<string>> {
    const shard = this.#shard()
    if (this.#loaded?.shard !== shard) {
      const ids = shard.lists.callIds().then((all) => new Set(all))
      this.#loaded = { shard, ids }
    }
    return this.#loaded.ids
  }
}

function firstOf(ids: Iterable<string>, count: number): readonly string[] {
  const first: string[] = []
  if (count <= 0) return first
  for (const id of ids) {
    first.push(id)
    if (first.length >= count) break
  }
  return first
}

function isWanted(record: AuditRecord, { key, operation, botId }: AuditQuestion): boolean {
  if (key !== undefined && key !== (record.key?.id ?? 'admin')) return false
  if (operation !== undefined && operation !== record.operation) return false
  return botId === undefined || botId === record.botId || record.botIds?.includes(botId) === true
}
