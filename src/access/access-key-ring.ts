/**
 * All keys of the private API in the memory of a worker, so that a request is checked without a read or another worker.
 * Until the worker has got the first table (access/key-sync.ts), it knows no key and must not say that one is wrong.
 *
 * A key is found by its id. Its secret is compared by SHA-256 in constant time, with as many comparisons if there is no
 * such key, so neither the time nor the result tells an unknown key from a revoked or an expired one.
 */
import { randomBytes, timingSafeEqual } from 'node:crypto'
import { type Clock, sleep, type Timer } from '../kit/clock.ts'
import type { StoredAccessKey } from '../shard/records/stored-records.ts'
import type { AccessKeyRecord } from '../shard/records/access-key-record.ts'
import type { Access, KeyAccess, KeyLimits } from '../api/access.ts'
import { type AccessKey, accessKeyHash, secretTagOf } from './access-key.ts'
import { makersOf, type AccessKeyTable } from './access-key-table.ts'

/** What a secret grants. */
interface Grant {
  readonly hash: Buffer
  readonly access: KeyAccess
}

interface Watcher {
  readonly access: KeyAccess
  readonly onEnd: () => void
}

/** When keys were used last: Unix seconds by the ids of the keys. */
export type KeyUses = Readonly<Record<string, number>>

export class AccessKeyRing {
  readonly #clock: Clock
  #grants: ReadonlyMap<string, readonly Grant[]> | undefined
  #version = ''
  readonly #watchers = new Set<Watcher>()
  /** Fires when the first key expires that is watched. */
  #nextEnd: { readonly atMs: number; readonly timer: Timer } | undefined
  /** In Unix seconds; reported once. */
  readonly #used = new Map<string, number>()
  readonly #onKnown = new Set<() => void>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Whether the keys are known. */
  get isKnown(): boolean {
    return this.#grants !== undefined
  }

  /** The version of the table; empty before the first one. */
  get version(): string {
    return this.#version
  }

  /** Resolves when the keys are known, or after `waitMs`. */
  async untilKnown(waitMs: number): Promise<void> {
    if (this.isKnown) return
    const known = new AbortController()
    const end = (): void => known.abort()
    this.#onKnown.add(end)
    await sleep(this.#clock, waitMs, known.signal)
    this.#onKnown.delete(end)
  }

  /** Takes a table. What began with a key that is not valid any more ends before this returns. */
  set({ version, keys }: AccessKeyTable): void {
    if (version !== this.#version || this.#grants === undefined) {
      this.#version = version
      const records = new Map(keys.map(({ id, record }) => [id, record]))
      this.#grants = new Map(keys.map((key) => [key.id, grantsOf(key, records)]))
    }
    for (const end of this.#onKnown) end()
    this.endExpired()
  }

  /** Returns how many keys are valid now and expire before a time; rotated secrets do not count. */
  countEnding(beforeMs: number): number {
    const nowMs = this.#clock.nowMs()
    const ends = Array.from(this.#grants?.values() ?? [], (grants) =>
      Math.max(...grants.map(({ access }) => access.endsAtMs)),
    )
    return ends.filter((endsAtMs) => endsAtMs > nowMs && endsAtMs < beforeMs).length
  }

  /** Returns what a key may do; undefined if it is not valid. */
  find({ id, secret }: AccessKey): KeyAccess | undefined {
    const hash = accessKeyHash(secret)
    const nowMs = this.#clock.nowMs()
    let found: KeyAccess | undefined
    const grants = this.#grants?.get(id) ?? decoys
    for (const grant of grants) {
      if (timingSafeEqual(hash, grant.hash) && nowMs < grant.access.endsAtMs) found = grant.access
    }
    return this.#noted(found)
  }

  /** Returns what a session may do that was begun with a secret of a key; undefined if that secret is not valid any more. */
  ofSession(id: string, secretTag: string): KeyAccess | undefined {
    return this.#noted(this.#current({ id, secretTag }))
  }

  /** Whether the secret that an access was granted for is still valid. */
  isCurrent(access: Access): boolean {
    return access === 'root' || this.#current(access) !== undefined
  }

  /**
   * Ends something long, such as a stream, when the key ends that it began with; before this returns if it has ended.
   *
   * @returns a function that stops the watch
   */
  watch(access: Access, onEnd: () => void): () => void {
    if (access === 'root') return ignore
    const watcher = { access, onEnd }
    this.#watchers.add(watcher)
    this.#endIfOver(watcher)
    return () => void this.#watchers.delete(watcher)
  }

  /** Ends what was begun with keys that have ended since. Called now and then, because the wall clock may be set. */
  endExpired(): void {
    this.#nextEnd?.timer.cancel()
    this.#nextEnd = undefined
    for (const watcher of this.#watchers) this.#endIfOver(watcher)
  }

  /** Returns the uses that were not reported yet. */
  uses(): KeyUses {
    return Object.fromEntries(this.#used)
  }

  /** The owner of the keys has these uses. */
  reported(uses: KeyUses): void {
    for (const [id, atS] of Object.entries(uses)) {
      if (this.#used.get(id) === atS) this.#used.delete(id)
    }
  }

  /** Returns what a secret grants now; undefined if it is not valid any more. */
  #current({ id, secretTag }: Pick<KeyAccess, 'id' | 'secretTag'>): KeyAccess | undefined {
    const grants = this.#grants?.get(id) ?? []
    const access = grants.find((grant) => grant.access.secretTag === secretTag)?.access
    return access !== undefined && this.#isLive(access) ? access : undefined
  }

  #endIfOver(watcher: Watcher): void {
    const access = this.#current(watcher.access)
    if (access === undefined) {
      this.#watchers.delete(watcher)
      watcher.onEnd()
    } else if (access.endsAtMs < (this.#nextEnd?.atMs ?? Infinity)) {
      this.#nextEnd?.timer.cancel()
      const delayMs = access.endsAtMs - this.#clock.nowMs()
      const timer = this.#clock.after(delayMs, () => this.endExpired())
      this.#nextEnd = { atMs: access.endsAtMs, timer }
    }
  }

  #noted(access: KeyAccess | undefined): KeyAccess | undefined {
    if (access !== undefined) this.#used.set(access.id, Math.floor(this.#clock.nowMs() / 1_000))
    return access
  }

  #isLive({ endsAtMs }: KeyAccess): boolean {
    return this.#clock.nowMs() < endsAtMs
  }
}

/** A key has at most two secrets: the current one, and an old one until its overlap ends. */
const accessKeySecretsMax = 2

function grantsOf(
  { id, record }: StoredAccessKey,
  records: ReadonlyMap<string, AccessKeyRecord>,
): readonly Grant[] {
  const makers = makersOf(id, records).flatMap((by) => limitsOf(by, records.get(by)))
  const rights = {
    id,
    makers,
    name: record.name,
    scopes: new Set(record.scopes),
    bots: record.bots && new Set(record.bots),
    updatesPerSecond: record.updatesPerSecond,
    requestsPerSecond: record.requestsPerSecond,
    limitSlot: record.limitSlot,
  }
  const grants = record.secrets.map(({ sha256, endsAtMs = Infinity }): Grant => {
    const ends = Math.min(endsAtMs, record.endsAtMs ?? Infinity)
    const access = { ...rights, secretTag: secretTagOf(sha256), endsAtMs: ends }
    return { hash: Buffer.from(sha256, 'base64url'), access }
  })
  return [...grants, ...decoys].slice(0, accessKeySecretsMax)
}

function limitsOf(id: string, record: AccessKeyRecord | undefined): readonly KeyLimits[] {
  if (record === undefined) return []
  const { updatesPerSecond, requestsPerSecond, limitSlot } = record
  return [{ id, updatesPerSecond, requestsPerSecond, limitSlot }]
}

/** Grants that no secret matches. */
const decoys: readonly Grant[] = Array.from({ length: accessKeySecretsMax }, () => ({
  hash: randomBytes(32),
  access: {
    id: '',
    name: '',
    secretTag: '',
    scopes: new Set(),
    bots: new Set(),
    updatesPerSecond: undefined,
    requestsPerSecond: undefined,
    endsAtMs: 0,
    limitSlot: 0,
  },
}))

function ignore(): void {
  // Nothing was begun.
}
