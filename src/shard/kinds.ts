/**
 * The kinds of records: a row is all that is told of one. Its keys and their ranges (record-kind.ts), reads and lists (shard-lists.ts),
 * checks of files (shard-records.ts), erasures (payload-purge.ts), imports, logs and the tables of docs/inside/storage.md follow from it.
 *
 * To add a kind, add a row here, and the type of its record in records/. A record of JSON goes to `jsonKinds`: an operation of
 * the same name puts it, or deletes it (operations.ts). Letters are stored: do not change them, and use none again. A server that does not know
 * a letter refuses an import, and its checks call the key unknown; so a feature that ends leaves its row.
 */
import assert from 'node:assert'
import { accessKeyCodec } from './records/access-key-record.ts'
import type { AttemptsRecord } from './records/attempts-record.ts'
import type { AuditRecord } from './records/audit-record.ts'
import type { BotRecord, QueueSettings } from './records/bot-record.ts'
import * as record from './records/record.ts'
import {
  hashPart,
  hexPart,
  idPart,
  type QueueId,
  queueIdOfKey,
  queuePart,
  timePart,
} from './records/record-keys.ts'
import { movedReplay, movedSettings, movedUpdate, RecordKind } from './records/record-kind.ts'
import type { ReplayRecord } from './records/replay-record.ts'

const { ofJson } = record
const updateId = idPart('updateId')
const minute = timePart('minute', (time) => ` in minute ${time}`)
const halfDay = timePart('halfDay', () => '')

/** Kinds of JSON. */
export const jsonKinds = {
  bot: new RecordKind({
    letter: 'b',
    key: [queuePart],
    codec: ofJson<BotRecord>(),
    name: 'bot',
    place: 'registration',
    says: 'a bot',
    lost: "the bot's token cannot be checked: its calls and pushes get 503 `STORE_UNAVAILABLE` until it is registered again, with the same queue and a new token",
  }),
  settings: new RecordKind({
    letter: 'w',
    key: [queuePart],
    codec: ofJson<QueueSettings>(),
    name: 'settings',
    says: 'the settings of a queue, of its bot and of its operator',
    lost: 'the queue has no webhook, is not paused, has no limit of deliveries, has no signing keys, and takes updates of all types, until the bot or the operator sets them again. If it keeps updates that have left, none goes for its age or the size of the queue until the retention is set again; the bound of the server and a full disk still count',
    retyped: movedSettings,
  }),
  attempts: new RecordKind({
    letter: 'a',
    key: [queuePart],
    codec: ofJson<AttemptsRecord>(),
    name: 'attempts',
    says: 'the last attempts of the webhook of a queue',
    lost: 'the attempts are forgotten',
    hasPayload: true,
  }),
  replay: new RecordKind({
    letter: 'j',
    key: [queuePart, idPart('jobId')],
    codec: ofJson<ReplayRecord>(),
    name: 'replay',
    says: 'a replay, under its id: the second in which it began, or later',
    lost: 'the replay has ended, and is not listed',
    retyped: movedReplay,
  }),
  accessKey: new RecordKind({
    letter: 'k',
    key: [hexPart(8)],
    codec: accessKeyCodec,
    name: 'access key',
    says: 'an access key, in shard 0 only',
    lost: 'the key is unknown: its requests get 401. Make a new one',
  }),
  audit: new RecordKind({
    letter: 'c',
    key: [hexPart(10)],
    codec: ofJson<AuditRecord>(),
    name: 'recorded call',
    says: 'a [recorded call](../use/api.md#audit), in shard 0 only, under its time in milliseconds (6 bytes) and a random number (4 bytes). The oldest of more than 10,000 go',
    lost: 'the call is not listed',
  }),
}

/** All kinds. An update has the keys of `update`, `leftUpdate` and `deadLetter` in this order. */
export const kinds = {
  update: new RecordKind({
    letter: 'u',
    key: [queuePart, updateId],
    codec: { encode: record.encodeUpdate, decode: record.decodeUpdate, typeAt: 1 },
    name: 'update',
    says: 'an update, under its id',
    lost: 'it is left out of all responses, deliveries and lists',
    hasPayload: true,
    retyped: movedUpdate,
  }),
  leftUpdate: new RecordKind({
    letter: 'v',
    key: [queuePart, updateId],
    codec: { encode: record.encodeLeftUpdate, decode: record.decodeLeftUpdate, typeAt: 1 },
    name: 'kept update',
    says: 'a kept update that has left its queue alone: delivered, expired or removed. It has no `u` record any more',
    lost: 'it is not listed, and goes with the rest of its queue',
    hasPayload: true,
    retyped: movedUpdate,
  }),
  deadLetter: new RecordKind({
    letter: 'd',
    key: [queuePart, updateId],
    codec: { encode: record.encodeLeftUpdate, decode: record.decodeDeadLetter, typeAt: 1 },
    name: 'dead letter',
    says: 'a dead letter, under the id that its update had',
    lost: 'it is left out of all lists',
    hasPayload: true,
    retyped: movedUpdate,
  }),
  keptRun: new RecordKind({
    letter: 'l',
    key: [queuePart, updateId],
    codec: { encode: record.encodeKeptRun, decode: record.decodeKeptRun },
    name: 'run of kept updates',
    place: 'run of kept updates from',
    says: 'a run of updates that have left together by a new floor, confirmed or dropped, under the first id. Their `u` records stay where they are until the run is deleted',
    lost: 'what it keeps is not listed, and goes with the rest of its queue',
  }),
  keptState: new RecordKind({
    letter: 'n',
    key: [queuePart],
    codec: { encode: record.encodeKeptState, decode: record.decodeKeptState },
    name: 'counts of kept updates',
    says: 'how many updates a queue keeps, their bytes, and where its last run ends; absent if it keeps none',
    lost: 'it is counted again from the `v` and `l` records, before anything is added',
  }),
  state: new RecordKind({
    letter: 's',
    key: [queuePart],
    codec: { encode: record.encodeQueueState, decode: record.decodeQueueState },
    name: 'ids and counts',
    says: 'the ids and counts of a queue',
    lost: 'the queue is counted again from its `u` records after its last run. Its next id is above every id that it can have used. Updates that were confirmed but not yet deleted may be delivered once more, kept ones not: see below',
  }),
  expiry: new RecordKind({
    letter: 'x',
    key: [minute, queuePart],
    codec: { encode: record.encodeMark, decode: record.assertMark },
    name: 'expiry',
    says: 'something in this queue may expire in this minute (counted since 1970), one for each queue and minute. For dead letters there is one per queue and day: in the first minute after their seven days that equals the bot id modulo 1440',
    lost: 'the expiry sweep checks its queue, and the record is deleted',
  }),
  idempotencyKey: new RecordKind({
    letter: 'i',
    key: [halfDay, queuePart, hashPart],
    codec: { encode: record.encodeKey, decode: record.decodeKey },
    name: 'idempotency key',
    says: 'an [idempotency key](#idempotency-keys)',
    lost: 'it is ignored: a repeated push stores its update again rather than losing it',
  }),
  ...jsonKinds,
}

export type AnyKind = RecordKind
/** A kind of which a queue has a record for each of some ids. */
export type KindById = Pick<typeof kinds.update, 'key' | 'del'>

export const allKinds: readonly AnyKind[] = Object.values(kinds)

const kindsByLetter: readonly (AnyKind | undefined)[] = Array.from({ length: 256 }, (_, prefix) =>
  allKinds.find((kind) => kind.prefix === prefix),
)

/** Returns the kind of the records whose keys begin with this byte; undefined if there is none. */
export function kindOfLetter(prefix: number): AnyKind | undefined {
  return kindsByLetter[prefix]
}

/** Returns the kind of a record by its key; undefined for a key of no known letter and length. */
export function kindOf(key: Buffer): AnyKind | undefined {
  const kind = kindsByLetter[key[0] ?? 0]
  return kind?.keyBytes === key.length ? kind : undefined
}

/** The copy of a damaged record that was found under another key. It is as damaged, so nobody checks it. */
export const damagedCopy = {
  letter: 'q',
  prefix: 0x71,
  name: 'copy of a damaged record',
  says: 'a copy of a damaged record, under the complete key of that record',
} as const

/** Returns the key under which the copy of a damaged record is stored. */
export function copyKey(key: Buffer): Buffer {
  return Buffer.concat([Buffer.from([damagedCopy.prefix]), key])
}

/** Returns the key of the record of which this is the key of a copy; undefined for any other key. */
export function copiedKey(key: Buffer): Buffer | undefined {
  return key[0] === damagedCopy.prefix ? key.subarray(1) : undefined
}

/** The kinds of records that may have payloads. */
export const payloadKinds: readonly AnyKind[] = allKinds.filter(
  ({ row }) => row.hasPayload === true,
)

/** The kinds of records that an update may have, by its id, in the order in which it may get them. */
export const kindsOfUpdate = payloadKinds.filter(isById)

const letters = [damagedCopy.letter, ...allKinds.map(({ row }) => row.letter)]
assert(new Set(letters).size === letters.length, 'no two kinds of records have one letter')

for (const { row } of payloadKinds) {
  const names = row.key.map(({ name }) => name).join(' ')
  assert(names === 'queue' || names === 'queue updateId', `an erasure does not find ${row.letter}`)
}

/** Returns whether records of a kind with payloads are stored under the ids of updates, and not once for each queue. */
export function isById({ row }: AnyKind): boolean {
  return row.key.length > 1
}

/** Returns whether a record has the payload of an update of one of these queues, and is stored under its id. */
export function isUpdateOf(key: Buffer, queues: readonly QueueId[]): boolean {
  const kind = kindsOfUpdate.find(({ prefix }) => prefix === key[0])
  return kind?.keyBytes === key.length && queues.includes(queueIdOfKey(key))
}
