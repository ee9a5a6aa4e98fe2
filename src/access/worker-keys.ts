import type { AccessKeyLimiter } from '../admission/access-key-limiter.ts'
import type { AccessKeyRegistry } from './access-key-registry.ts'
import type { AccessKeyRing } from './access-key-ring.ts'
import type { AuditTrail } from './audit-trail.ts'
import type { AuditWriter } from './audit-writer.ts'
import type { KeySync } from './key-sync.ts'

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
