/** A secret of a bot or of a key, as it is stored with it in JSON. */
export interface StoredSecret {
  /** SHA-256 of the token's secret part, base64url. The secret itself is never stored. */
  readonly sha256: string
  /** Wall time from which the secret is refused; absent for the current secret. */
  readonly endsAtMs?: number
  /** Another server has made it, so it has no checksum. It is accepted only with `--foreign-tokens`. */
  readonly isForeign?: true
}
