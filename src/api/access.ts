/**
 * What the sender of a request may do: everything with the admin key, the root, or what its own key says. All functions
 * are pure.
 */
import { PostboteError } from '../kit/errors.ts'
import type { NeededScope, Scope } from '../kit/rights.ts'

export type Access = 'root' | KeyAccess

/** What a key may do per second. */
export interface KeyLimits {
  readonly id: string
  readonly updatesPerSecond: number | undefined
  readonly requestsPerSecond: number | undefined
  /** See `AccessKeyRecord`. */
  readonly limitSlot: number
}

/** The rights of a key, by one of its secrets. */
export interface KeyAccess extends KeyLimits {
  /** The key that made this one first, and then the one that made that. What this key does counts for them, too. */
  readonly makers?: readonly KeyLimits[]
  readonly name: string
  /** Identifies the secret within the key; no secret itself. */
  readonly secretTag: string
  readonly scopes: ReadonlySet<Scope>
  /** Undefined: all bots. */
  readonly bots: ReadonlySet<number> | undefined
  /** Wall time from which the secret is refused; Infinity if it does not expire. */
  readonly endsAtMs: number
}

/** Returns the id of the first key of the family of a key (key-family.ts). */
export function familyIdOf({ id, makers }: KeyAccess): string {
  return makers?.at(-1)?.id ?? id
}

/** Throws KEY_LACKS_SCOPE, which names the scope. */
export function assertScope(access: Access, needed: NeededScope): void {
  if (access === 'root' || needed === 'any') return
  if (access.scopes.has(needed) || access.scopes.has('all')) return
  throw new PostboteError('KEY_LACKS_SCOPE', { detail: needed })
}

/** Returns KEY_LACKS_BOT if the access does not include this bot. */
export function botRefusal(access: Access, botId: number): PostboteError | undefined {
  if (access === 'root' || access.bots === undefined || access.bots.has(botId)) return undefined
  return new PostboteError('KEY_LACKS_BOT', { detail: 'not for this one' })
}

/** Throws KEY_LACKS_BOT if the access does not include all bots. */
export function assertAllBots(access: Access): void {
  if (access === 'root' || access.bots === undefined) return
  throw new PostboteError('KEY_LACKS_BOT', { detail: 'this call is about all of them' })
}

/** The rights that a key gets. */
export interface WantedRights {
  readonly updatesPerSecond?: number | undefined
  readonly requestsPerSecond?: number | undefined
  readonly endsAtMs?: number | undefined
}

/**
 * Checks that a key which makes or rotates another one may do at least as much itself. It has all scopes for all bots, or
 * it could not make the call.
 *
 * @throws KEY_EXCEEDED, which names what the other key may do and this one may not
 */
export function assertWithin(access: Access, wanted: WantedRights): void {
  if (access === 'root') return
  for (const [name, own, other] of [
    ['updates_per_second', access.updatesPerSecond, wanted.updatesPerSecond],
    ['requests_per_second', access.requestsPerSecond, wanted.requestsPerSecond],
  ] as const) {
    if (own !== undefined && !(other !== undefined && other <= own)) {
      throw new PostboteError('KEY_EXCEEDED', { detail: `${name} of at most ${own}` })
    }
  }
  const endsAtS = Math.floor(access.endsAtMs / 1_000)
  if ((wanted.endsAtMs ?? Infinity) > access.endsAtMs) {
    throw new PostboteError('KEY_EXCEEDED', { detail: `expires of at most ${endsAtS}` })
  }
}
