/**
 * What a call has changed of a bot, of one of its queues or of a key, for the audit: each setting as the API names and shows it,
 * before and after. The tables beside the records say what may be shown of each field (shard/records/setting-rows.ts).
 */
import { type AccessKeyRecord, keyRows } from '../shard/records/access-key-record.ts'
import type { AuditChange } from '../shard/records/audit-record.ts'
import {
  type BotRecord,
  botRows,
  type QueueSettings,
  queueRows,
} from '../shard/records/bot-record.ts'
import {
  type Setting,
  type Settings,
  settingsIn,
  type Shown,
} from '../shard/records/setting-rows.ts'

/** What is stored of a bot and a queue of it. */
export interface StoredSettings {
  readonly bot: BotRecord
  readonly queue: QueueSettings
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
