/**
 * What a call has changed of a bot and of one of its queues, for the audit: each setting as the API names and shows it, before
 * and after. The table has a row for each field that is stored, so a new field does not compile before it is decided here what
 * may be shown of it. Of a secret, it is only said that it changed.
 */
import type { BotQueue } from '../bots/bot-queue.ts'
import { hostOfWebhook } from '../delivery/endpoint/endpoint.ts'
import { utcText } from '../kit/clock.ts'
import { typesOf } from '../kit/update-types.ts'
import type { AccessKeyRecord } from '../shard/records/access-key-record.ts'
import type { AuditChange } from '../shard/records/audit-record.ts'
import type { BotRecord, WebhookRecord } from '../shard/records/bot-record.ts'

/** What is stored of a bot and a queue of it. */
export interface StoredSettings {
  readonly bot: BotRecord
  readonly queue: BotQueue['settings']
}

/** A value as it is shown; null: it is not set. */
type Shown = string | number | readonly (string | number)[] | null

interface Setting {
  readonly shown: Shown
  /** What else tells whether it has changed, and is never shown. */
  readonly hidden?: unknown
}

type Settings = Readonly<Record<string, Setting>>

/** The settings in each field of a record. */
type Rows<Stored> = {
  readonly [Name in keyof Stored]-?: (stored: NonNullable<Stored[Name]> | undefined) => Settings
}

const none = (): Settings => ({})

function shown<Value extends string | number>(
  name: string,
): (value: Value | readonly Value[] | undefined) => Settings {
  return (value) => ({ [name]: { shown: value ?? null } })
}

function secret(name: string): (value: unknown) => Settings {
  return (value) => ({ [name]: { shown: null, hidden: value } })
}

const botRows: Rows<BotRecord> = {
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

/** What the server learns of an endpoint is no setting. */
const webhookRows: Rows<WebhookRecord> = {
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

const queueRows: Rows<BotQueue['settings']> = {
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

const keyRows: Rows<AccessKeyRecord> = {
  name: shown('name'),
  scopes: shown('scopes'),
  bots: shown('bots'),
  updatesPerSecond: shown('updates_per_second'),
  requestsPerSecond: shown('requests_per_second'),
  secrets: secret('secret'),
  createdAtMs: none,
  createdBy: none,
  endsAtMs: (timeMs) => ({ expires: { shown: timeMs === undefined ? null : utcText(timeMs) } }),
  lastUsedMs: none,
  limitSlot: none,
}

/** A value has this many characters in the audit. Chosen: a name, a host or some types; the audit is no copy of the settings. */
const shownLengthMax = 48
/** The changes of a call have this many bytes: with the rest of it, at most 1 KiB, as the batches of the audit need. */
export const changesBytesMax = 500

/** Returns what differs, as much of it as fits; undefined: nothing does. */
export function settingChanges(
  before: StoredSettings,
  after: StoredSettings,
): readonly AuditChange[] | undefined {
  return changesOf(settingsOf(before), settingsOf(after))
}

/** Returns what differs of a key of the private API. A new one has nothing before. */
export function keyChanges(
  before: Partial<AccessKeyRecord>,
  after: AccessKeyRecord,
): readonly AuditChange[] | undefined {
  return changesOf(settingsIn(keyRows, before), settingsIn(keyRows, after))
}

function changesOf(old: Settings, now: Settings): readonly AuditChange[] | undefined {
  const changes = Object.entries(now)
    .filter(([name, setting]) => textOf(setting) !== textOf(old[name]))
    .map(([field, setting]) => changeOf(field, old[field]?.shown ?? null, setting.shown))
  return changes.length === 0 ? undefined : bounded(changes)
}

function settingsOf({ bot, queue }: StoredSettings): Settings {
  return { ...settingsIn(botRows, bot), ...settingsIn(queueRows, queue) }
}

function settingsIn<Stored>(rows: Rows<Stored>, stored: Partial<Stored>): Settings {
  const all: Record<string, Setting> = {}
  for (const name in rows) Object.assign(all, rows[name](stored[name] ?? undefined))
  return all
}

function textOf(setting: Setting | undefined): string {
  return JSON.stringify(setting) ?? ''
}

/** What looks the same before and after has changed in what is not shown. */
function changeOf(field: string, old: Shown, now: Shown): AuditChange {
  const [from, to] = [shownText(old), shownText(now)]
  return from === to ? { field } : { field, from, to }
}

function shownText(value: Shown): string | null {
  const values = [value].flat().filter((each) => each !== null)
  if (values.length === 0) return null
  const characters = Array.from(values.join(', '))
  if (characters.length <= shownLengthMax) return characters.join('')
  return `${characters.slice(0, shownLengthMax - 1).join('')}…`
}

/** Leaves out values first, and then changes. */
function bounded(changes: readonly AuditChange[]): readonly AuditChange[] {
  const fitting: AuditChange[] = []
  let bytes = 0
  for (const change of changes) {
    const found = [change, { field: change.field }].find(
      (each) => bytes + bytesOf(each) <= changesBytesMax,
    )
    if (found === undefined) break
    fitting.push(found)
    bytes += bytesOf(found)
  }
  return fitting
}

function bytesOf(change: AuditChange): number {
  return Buffer.byteLength(JSON.stringify(change)) + 1
}
