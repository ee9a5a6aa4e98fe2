import type { AccessKeyLimiter } from '../admission/access-key-limiter.ts'
import type { AccessKeyRegistry } from './access-key-registry.ts'
import type { AccessKeyRing } from './access-key-ring.ts'
import type { AuditTrail } from './audit-trail.ts'
import type { AuditWriter } from './audit-writer.ts'
import type { AnswersTo } from '../links/ask/question.ts'
import type { keysOwnerQuestions, KeySync } from './key-sync.ts'

/** All that a worker has of keys. */
export interface WorkerKeys {
  readonly ring: AccessKeyRing
  readonly registry: AccessKeyRegistry
  readonly sync: KeySync
  readonly limiter: AccessKeyLimiter
  readonly audit: WorkerAudit
}

/** All that a worker has of the recorded calls. */
export interface WorkerAudit {
  /** Works only where shard 0 is. */
  readonly trail: Pick<AuditTrail, 'append' | 'read' | 'reset'>
  readonly writer: Pick<AuditWriter, 'record' | 'close'>
}

/** Returns what the worker that has shard 0 answers to the others. */
export function keysOwnerAnswers({
  registry,
  audit,
}: Pick<WorkerKeys, 'audit' | 'registry'>): AnswersTo<typeof keysOwnerQuestions> {
  return {
    async keys({ version, uses }) {
      const table = await registry.table()
      registry.noteUses(uses)
      return table.version === version ? { version } : table
    },
    async recordCalls(calls) {
      await audit.trail.append(calls)
      return {}
    },
  }
}
