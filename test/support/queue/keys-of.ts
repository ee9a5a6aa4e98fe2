/** The keys of the private API for a test: those of a worker that has the only shard. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import type { AccessKeyLimiter } from '../../../src/admission/access-key-limiter.ts'
import { AccessKeyRegistry } from '../../../src/access/access-key-registry.ts'
import { AccessKeyRing } from '../../../src/access/access-key-ring.ts'
import { AuditTrail } from '../../../src/access/audit-trail.ts'
import type { Clock } from '../../../src/kit/clock.ts'
import { keyLimitNumbers, SharedKeyLimits } from '../../../src/admission/shared-key-limits.ts'
import { AuditWriter } from '../../../src/access/audit-writer.ts'
import { KeySync } from '../../../src/access/key-sync.ts'
import type { WorkerKeys } from '../../../src/access/worker-keys.ts'
import { StreamAccess } from '../../../src/features/ingest/stream-access.ts'
import type { Shard } from '../../../src/shard/shard.ts'

/** Until `sync.refresh()`, the ring knows no keys. */
export function keysOf(
  clock: Clock,
  {
    shard,
    ring = new AccessKeyRing(clock),
  }: { readonly shard: () => Shard; readonly ring?: AccessKeyRing },
): WorkerKeys {
  const registry = new AccessKeyRegistry(clock, shard, randomBytes)
  const sync = new KeySync({ clock, ring, registry, isOwner: () => true, openStream })
  const trail = new AuditTrail(shard)
  const writer = new AuditWriter(
    clock,
    { add: () => undefined },
    { warn: () => undefined },
    (calls) => trail.append(calls),
  )
  return { ring, registry, sync, limiter: limiterOf(clock), audit: { trail, writer } }
}

export function limiterOf(clock: Pick<Clock, 'machineMs'>): AccessKeyLimiter {
  return new SharedKeyLimits(new BigUint64Array(keyLimitNumbers), clock)
}

/** The access of a stream with the admin key. */
export function rootStreamAccess(clock: Clock): StreamAccess {
  return new StreamAccess('root', { isCurrent: () => true }, limiterOf(clock), clock)
}

function openStream(path: string): never {
  assert.fail(`no other worker has ${path}`)
}
