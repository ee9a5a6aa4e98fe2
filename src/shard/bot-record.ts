/** What is stored of a bot (`b`) and of each of its two queues' settings (`w`), as JSON. */

export interface StoredSecret {
  /** SHA-256 of the token's secret part, base64url. The secret itself is never stored. */
  readonly sha256: string
  /** Wall time from which it is refused; absent for the current one. */
  readonly endsAtMs?: number
}

export interface BotRecord {
  readonly firstName: string
  readonly username: string
  /** The current secret first, then at most one more that is running out. */
  readonly secrets: readonly StoredSecret[]
  readonly createdAtMs: number
}

export interface WebhookRecord {
  readonly url: string
  readonly maxConnections: number
  readonly secretToken?: string
  /** Given by the bot: deliveries go there whatever the name resolves to. */
  readonly ipAddress?: string
  /** The address that was verified when the webhook was set. */
  readonly verifiedAddress?: string
  /** PEM; the only trust root where it is given. */
  readonly certificate?: string
  /** The bot's token, sealed (bots/token-seal.ts): only where replies of webhooks are sent on to another server. */
  readonly sealedToken?: string
  /** Wall time of the first 410 of the current run of them. */
  readonly goneSinceMs?: number
}

/** A key that deliveries are signed with. */
export interface StoredSigningKey {
  readonly id: string
  readonly type: 'hmac-sha256' | 'ed25519'
  /** Base64: the shared secret, or the private key's PKCS #8. */
  readonly secret: string
  readonly createdAtMs: number
  /** Wall time from which nothing is signed with it; absent for the current one. */
  readonly endsAtMs?: number
}

/** The webhook and allowed types are the bot's to set as a whole; the rest is the operator's and stays. */
export interface QueueSettings {
  readonly webhook?: WebhookRecord
  /** A mask of update types (queue/update-types.ts); absent where nothing was ever set. */
  readonly allowedTypes?: number
  /** Nothing is delivered to the webhook, whichever it is, until the operator lets it go on. */
  readonly isPaused?: true
  /** The current one first. */
  readonly signingKeys?: readonly StoredSigningKey[]
}
