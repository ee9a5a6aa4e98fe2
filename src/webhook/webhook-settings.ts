/** The settings of a webhook that deliveries need. */
export interface WebhookSettings {
  /** The URL as setWebhook accepted it. Its rules are not applied again. */
  readonly url: string
  readonly maxConnections: number
  readonly secretToken?: string | undefined
  /** If set, it replaces the look-up of the host. */
  readonly ipAddress?: string | undefined
  /** PEM, as `readCertificates` returned it. */
  readonly certificate?: string | undefined
  /** The address that setWebhook connected to. */
  readonly verifiedAddress?: string | undefined
  /** The last value that `onGoneClock` reported. */
  readonly goneSinceMs?: number | undefined
}
