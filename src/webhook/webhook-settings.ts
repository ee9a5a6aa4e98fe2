/** What a webhook was set to, as deliveries need it. */
export interface WebhookSettings {
  /** As setWebhook accepted it; its rules are not applied again. */
  readonly url: string
  readonly maxConnections: number
  readonly secretToken?: string | undefined
  /** Takes the place of resolving the host. */
  readonly ipAddress?: string | undefined
  /** PEM, as `readCertificates` returned it. */
  readonly certificate?: string | undefined
  /** The address that setWebhook connected to. */
  readonly verifiedAddress?: string | undefined
  /** What `onGoneClock` last told. */
  readonly goneSinceMs?: number | undefined
}
