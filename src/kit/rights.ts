/** What the keys of the private API and the links of the owner's page may be given. The words are stored: do not rename them. */

/** What a key may do (docs/use/api.md), in the order of the documentation. */
export const scopes = ['push', 'read', 'manage', 'all'] as const
export type Scope = (typeof scopes)[number]

/** What a call needs: a scope, or any key at all. */
export type NeededScope = Scope | 'any'

/** What a link of the owner's page may allow, in the order of the documentation. */
export const portalRights = ['look', 'replay', 'test', 'check'] as const
export type PortalRight = (typeof portalRights)[number]

/** A secret of a bot or of a key, as it is stored with it in JSON. */
export interface StoredSecret {
  /** SHA-256 of the token's secret part, base64url. The secret itself is never stored. */
  readonly sha256: string
  /** Wall time from which the secret is refused; absent for the current secret. */
  readonly endsAtMs?: number
  /** Another server has made it, so it has no checksum. It is accepted only with `--foreign-tokens`. */
  readonly isForeign?: true
}
