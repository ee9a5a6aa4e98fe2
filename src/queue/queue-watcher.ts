import type { AdvanceOperation, PushOperation } from '../shard/operations.ts'
import type { AdvancedRange } from './window/backlog.ts'

/** Is told what happens to the updates of a queue. Must return at once and must not throw. */
export interface QueueWatcher {
  /** An update is on disk and visible. */
  pushed(operation: PushOperation): void
  /** The bot confirmed updates, or dropped them. */
  advanced(kind: AdvanceOperation['kind'], advanced: AdvancedRange): void
}
