/** Puts together what a worker has of the keys of the private API. */
import { randomBytes } from 'node:crypto'
import { AccessKeyRegistry } from '../access/access-key-registry.ts'
import { AuditTrail } from '../access/audit-trail.ts'
import type { BotCache } from '../bots/bot-cache.ts'
import type { Clock } from '../kit/clock.ts'
import { SharedKeyLimits } from '../admission/shared-key-limits.ts'
import type { Counters, Log } from '../kit/surroundings.ts'
import type { RecordedCall } from '../shard/records/audit-record.ts'
import type { Databases } from './databases.ts'
import { keysShard } from '../shard/records/access-key-record.ts'
import { AuditWriter } from '../access/audit-writer.ts'
import { askKeysOwner, keysOwnerQuestions, KeySync } from '../access/key-sync.ts'
import type { WorkerAudit, WorkerKeys } from '../access/worker-keys.ts'
import type { PrivateApiGuard } from '../access/private-api-guard.ts'
import { type OwnersParts, reachShardOwner, type ShardOwner } from './reach-owners.ts'

export interface WorkerKeysParts extends OwnersParts {
  readonly clock: Clock
  readonly guard: PrivateApiGuard
  readonly databases: Databases
  readonly slot: Counters
  readonly log: Pick<Log, 'warn'>
}

/**
 * A worker that starts waits this long for the keys if another worker has them, and serves without them after that. Chosen:
 * an answer takes milliseconds.
 */
const keysOpenWaitMs = 500

export function workerKeys(
  parts: WorkerKeysParts,
  bots: BotCache,
): { readonly keys: WorkerKeys; readonly startKeys: () => Promise<void> } {
  const { clock, databases, guard, memory } = parts
  const { ring } = guard
  const link = reachShardOwner(parts, keysShard)
  const registry = new AccessKeyRegistry(
    databases.clockOf(keysShard),
    () => bots.shardAt(keysShard),
    randomBytes,
  )
  const audit = workerAudit(parts, bots, link)
  const sync = new KeySync({
    clock,
    ring,
    registry,
    isOwner: () => link.isOwn(),
    openStream: (path) => link.openStream(path),
  })
  return {
    keys: { ring, registry, sync, limiter: new SharedKeyLimits(memory.keyLimits, clock), audit },
    // The first request may arrive right after this. A worker that starts together with the one that has the keys does not
    // wait for that one.
    startKeys: async () => {
      void sync.start()
      if (link.isOwn() || link.isServed()) await ring.untilKnown(keysOpenWaitMs)
    },
  }
}

function workerAudit(
  { clock, slot: counters, log }: WorkerKeysParts,
  bots: BotCache,
  link: ShardOwner,
): WorkerAudit {
  const trail = new AuditTrail(() => bots.shardAt(keysShard))
  const store = async (calls: readonly RecordedCall[]): Promise<void> => {
    if (link.isOwn()) await trail.append(calls)
    else {
      const asked = { clock, openStream: (path: string) => link.openStream(path) }
      await askKeysOwner(asked, keysOwnerQuestions.recordCalls, calls)
    }
  }
  return { trail, writer: new AuditWriter(clock, counters, log, store) }
}
