/**
 * The JSON that is stored of a bot (`b` record) and of each of its two queues' settings (`w` record), and what the audit may show of it.
 */
import { hostOfWebhook } from '../../http/webhook-url.ts'
import type { PortalRight, StoredSecret } from '../../kit/rights.ts'
import { typesOf } from '../../kit/update-types.ts'
import { none, secret, type SettingRows, settingsIn, shown } from './setting-rows.ts'

/** A link of the owner's page. */
export interface StoredPortalLink {
  readonly id: string
  /** SHA-256 of the link's secret, base64url. The secret itself is never stored. */
  readonly sha256: string
  readonly createdAtMs: number
  /** Wall time from which the link is refused. */
  readonly endsAtMs: number
  readonly can: readonly PortalRight[]
  /** The one origin whose pages may frame the page. */
  readonly origin?: string
}

/** What happens to the getUpdates call that waits when a later one comes; absent for the 409 of the reference. */
export type PollsSetting = 'take_over'

/** What the operator has set for the deliveries and updates of a bot; a field is absent if the bot follows the server. */
export interface BotSettings {
  readonly polls?: PollsSetting
  /** The time to live of updates whose producer names none. */
  readonly ttlS?: number
  /** Its webhooks have at most this many connections. */
  readonly connectionsMax?: number
  /** The delay after each failure of an update; the last one repeats. */
  readonly retryDelaysS?: readonly number[]
  /** Sent with each delivery, by their names. The values are secrets. */
  readonly headers?: Readonly<Record<string, string>>
}

/** Where the updates of a bot come from, and how far its relay has come. */
export interface StoredRelay {
  /** The origin of its URL, one of `--relay-from`. */
  readonly from: string
  /** The id in the token. Another one has other updates. */
  readonly originBotId: number
  /** Sealed as that of a webhook. */
  readonly sealedToken: string
  /** Wall time at which it was set. */
  readonly setAtMs: number
  /** The first id that is not stored yet; absent until the first update. Written in the group of the updates before it. */
  readonly offset?: number
  /** Wall time of that group. */
  readonly storedAtMs?: number
}

export interface BotRecord extends BotSettings {
  readonly firstName: string
  readonly username: string
  /** The current secret first, then at most one old secret that is about to expire. */
  readonly secrets: readonly StoredSecret[]
  readonly createdAtMs: number
  /** SHA-256 of the idempotency key of its registration, base64url; absent if it had none. */
  readonly registeredBy?: string
  /** Each push to the bot is checked for the fields that bot frameworks need. */
  readonly isValidated?: true
  /** In the order in which they were made. */
  readonly portalLinks?: readonly StoredPortalLink[]
  readonly relay?: StoredRelay
}

/** What the audit may show of a bot. */
export const botRows: SettingRows<BotRecord> = {
  firstName: shown('first_name'),
  username: shown('username'),
  secrets: secret('token'),
  createdAtMs: none,
  registeredBy: none,
  isValidated: (isOn) => ({ validate: { shown: isOn === true ? 'telegram' : null } }),
  portalLinks: (links = []) => ({ portal_links: { shown: links.map(({ id }) => id) } }),
  // How far it has come is written with each group of updates.
  relay: (relay) => ({
    relay_from: { shown: relay?.from ?? null },
    relay_token: { shown: null, hidden: relay?.sealedToken },
  }),
  polls: shown('polls'),
  ttlS: shown('default_ttl'),
  connectionsMax: shown('connections_cap'),
  retryDelaysS: shown('retry_delays'),
  headers: (headers = {}) => ({ headers: { shown: Object.keys(headers), hidden: headers } }),
}

/** Changes the record of a bot on disk. Changes run one after the other. */
export type ChangeBotRecord = <Change extends { readonly record: BotRecord }>(
  botId: number,
  change: (current: BotRecord) => Change,
) => Promise<Change>

export interface WebhookRecord {
  readonly url: string
  readonly maxConnections: number
  readonly secretToken?: string
  /** Set by the bot: deliveries go to this address, whatever the host name resolves to. */
  readonly ipAddress?: string
  /** The address that was verified when the webhook was set. */
  readonly verifiedAddress?: string
  /** PEM. If present, it is the only trust root. */
  readonly certificate?: string
  /**
   * The bot's token, sealed (bots/token-seal.ts). Present only if webhook replies are forwarded to the upstream
   * server.
   */
  readonly sealedToken?: string
  /** Wall time of the first of the current run of 410 responses. */
  readonly goneSinceMs?: number
  /** How deliveries have failed lately; absent if none has. */
  readonly failures?: StoredFailures
}

/** What the audit may show of a webhook: what the server learns of an endpoint is no setting. */
const webhookRows: SettingRows<WebhookRecord> = {
  // The path of a URL may have the token of the bot.
  url: (url) => ({
    webhook: { shown: url === undefined ? null : hostOfWebhook(url), hidden: url },
  }),
  maxConnections: shown('max_connections'),
  secretToken: secret('secret_token'),
  ipAddress: shown('ip_address'),
  verifiedAddress: none,
  certificate: secret('certificate'),
  sealedToken: none,
  goneSinceMs: none,
  failures: none,
}

/** What the health of a webhook is restored from after the end of a process. Written now and then, so it may be behind. */
export interface StoredFailures {
  /** Failures since the last success. */
  readonly inRow: number
  /** Wall time of the first of them. */
  readonly sinceMs?: number
  /** Wall time of the last success. */
  readonly lastSuccessMs?: number
  /** The last attempt that failed. */
  readonly last: {
    /** Wall time. */
    readonly atMs: number
    readonly updateId: number
    readonly status: number
    readonly durationMs: number
    readonly address?: string
    readonly error: string
  }
}

/** A key that signs deliveries. */
export interface StoredSigningKey {
  readonly id: string
  readonly type: 'hmac-sha256' | 'ed25519'
  /** Base64 of the shared secret, or of the private key as PKCS #8. */
  readonly secret: string
  readonly createdAtMs: number
  /** Wall time from which the key signs nothing; absent for the current key. */
  readonly endsAtMs?: number
}

/**
 * The bot sets `webhook` and `allowedTypes`. The operator sets the rest, which is kept when the bot changes its part.
 */
export interface QueueSettings {
  readonly webhook?: WebhookRecord
  /** A bit mask of update types (kit/update-types.ts); absent if none were ever set. */
  readonly allowedTypes?: number | `0x${string}`
  /** Deliveries to any webhook of this queue are paused until the operator resumes them. */
  readonly isPaused?: true
  /** The limit of deliveries to any webhook of this queue; absent without one. */
  readonly deliveriesPerSecond?: number
  /** How much the operator has this queue keep of updates that left it; a field is absent if the queue follows the server's option. */
  readonly retention?: { readonly ms?: number; readonly bytes?: number }
  /** The current key first. */
  readonly signingKeys?: readonly StoredSigningKey[]
}

/** What the audit may show of a queue. */
export const queueRows: SettingRows<QueueSettings> = {
  webhook: (webhook) => settingsIn(webhookRows, webhook ?? {}),
  allowedTypes: (mask) => ({
    allowed_updates: { shown: mask === undefined ? null : typesOf(mask) },
  }),
  isPaused: (isOn) => ({ paused: { shown: isOn === true ? 'yes' : 'no' } }),
  deliveriesPerSecond: shown('deliveries_per_second'),
  retention: ({ ms, bytes } = {}) => ({
    retain: { shown: ms === undefined ? null : ms / 1_000 },
    retain_bytes: { shown: bytes ?? null },
  }),
  signingKeys: (keys = []) => ({ signing_keys: { shown: keys.map(({ id }) => id) } }),
}
