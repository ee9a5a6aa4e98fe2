/**
 * The keys of a shard's database. They are stored permanently: do not renumber, do not reorder. See docs/inside/storage.md.
 *
 *   u queue_id update_id(8)      an update                      s queue_id        ids and counts of a queue
 *   b queue_id                   a bot (main namespace only)    w queue_id        webhook and allowed_updates
 *   x minute(4) queue_id         something in this queue may expire in this minute
 *   i halfday(4) queue_id hash(16)  idempotency key             d queue_id update_id  dead letter
 *   v queue_id update_id         an update that has left its queue alone, and is kept
 *   l queue_id update_id         updates that have left together, from this id on, whose u records are kept
 *   n queue_id                   how many updates are kept, and their bytes
 *   a queue_id                   the last attempts of a webhook
 *   j queue_id job_id            a replay
 *   k access_key_id(8)           a key of the private API (shard 0 only)
 *   c time_ms(6) random(4)       a call that changed something (shard 0 only)
 *   q and a complete key         a copy of the damaged record that was found under that key
 *
 * All numbers are big-endian, so that keys sort in numeric order. queue_id has 8 bytes: the namespace (0, or 1 for
 * /test/), then the bot id in 7 bytes.
 */

/**
 * A queue as one exact number: the bot id, plus 2^52 for its /test/ namespace. Bot ids are below 2^52 (protocol.md §2), so
 * the sum fits in a double and is a cheap `Map` key.
 */
export type QueueId = number

const testNamespace = 2 ** 52

/**
 * Returns the queue of a bot.
 *
 * @param botId - below 2^52.
 * @param test - true for the bot's /test/ queue.
 */
export function queueIdOf(botId: number, test: boolean): QueueId {
  return test ? botId + testNamespace : botId
}

/** Returns the bot id of a queue. */
export function botIdOf(queue: QueueId): number {
  return queue >= testNamespace ? queue - testNamespace : queue
}

/** Returns whether this is a /test/ queue. */
export function isTestQueue(queue: QueueId): boolean {
  return queue >= testNamespace
}

/** Returns a queue with what it says of itself. */
export function queueParts(queue: QueueId): {
  readonly queue: QueueId
  readonly botId: number
  readonly isTest: boolean
} {
  return { queue, botId: botIdOf(queue), isTest: isTestQueue(queue) }
}

/** The first letter of a key, which is the kind of its record. */
export type RecordKind =
  | 'u'
  | 's'
  | 'b'
  | 'w'
  | 'x'
  | 'i'
  | 'd'
  | 'k'
  | 'c'
  | 'q'
  | 'v'
  | 'l'
  | 'n'
  | 'a'
  | 'j'

const prefixes: Readonly<Record<RecordKind, number>> = {
  u: 0x75,
  s: 0x73,
  b: 0x62,
  w: 0x77,
  x: 0x78,
  i: 0x69,
  d: 0x64,
  k: 0x6b,
  c: 0x63,
  q: 0x71,
  v: 0x76,
  l: 0x6c,
  n: 0x6e,
  a: 0x61,
  j: 0x6a,
}

const queueIdBytes = 8
/** Exclusive upper bound of update ids: larger than every id that a key can hold. */
export const updateIdEnd = 2 ** 32 - 1
/** Length of a `u`, `d`, `v`, `l` or `j` key. */
export const updateKeyBytes = 1 + queueIdBytes + 8
/** Length of a hash: SHA-256 cut to 16 bytes. */
export const idempotencyHashBytes = 16
/** Length of a `b`, `w`, `s`, `n` or `a` key. */
export const queueKeyBytes = 1 + queueIdBytes
/** Length of an `i` key. */
export const idempotencyKeyBytes = 1 + 4 + queueIdBytes + idempotencyHashBytes
const halfDayMs = 43_200_000

/** Writes the 8 bytes of a queue id at `offset`. */
function writeQueueId(target: Buffer, queue: QueueId, offset: number): void {
  const botId = botIdOf(queue)
  target[offset] = isTestQueue(queue) ? 1 : 0
  target.writeUIntBE(Math.floor(botId / 2 ** 32), offset + 1, 3)
  target.writeUInt32BE(botId % 2 ** 32, offset + 4)
}

function readQueueId(source: Buffer, offset: number): QueueId {
  const botId = source.readUIntBE(offset + 1, 3) * 2 ** 32 + source.readUInt32BE(offset + 4)
  return queueIdOf(botId, source[offset] === 1)
}

/** Returns the `u` key of an update. */
export function updateKey(queue: QueueId, updateId: number): Buffer {
  return keyWithId('u', queue, updateId)
}

/**
 * Returns the `d` key of a dead letter.
 *
 * @param updateId - the id that its update had.
 */
export function deadLetterKey(queue: QueueId, updateId: number): Buffer {
  return keyWithId('d', queue, updateId)
}

/** Returns the `v` key of an update that is kept alone. */
export function leftUpdateKey(queue: QueueId, updateId: number): Buffer {
  return keyWithId('v', queue, updateId)
}

/** Returns the `l` key of a run of kept updates that begins with this id. */
export function keptRunKey(queue: QueueId, firstId: number): Buffer {
  return keyWithId('l', queue, firstId)
}

/** Returns the `j` key of a replay. */
export function replayKey(queue: QueueId, jobId: number): Buffer {
  return keyWithId('j', queue, jobId)
}

function keyWithId(kind: 'u' | 'd' | 'v' | 'l' | 'j', queue: QueueId, updateId: number): Buffer {
  const key = Buffer.allocUnsafe(updateKeyBytes)
  key[0] = prefixes[kind]
  writeQueueId(key, queue, 1)
  key.writeUInt32BE(0, 9)
  key.writeUInt32BE(updateId, 13)
  return key
}

/** Returns the update id of a `u`, `d`, `v` or `l` key, and the job id of a `j` key. */
export function updateIdOfKey(key: Buffer): number {
  return key.readUInt32BE(13)
}

/** Returns the key of a record that exists once for each queue. */
export function queueKey(kind: 'b' | 'w' | 's' | 'n' | 'a', queue: QueueId): Buffer {
  const key = Buffer.allocUnsafe(queueKeyBytes)
  key[0] = prefixes[kind]
  writeQueueId(key, queue, 1)
  return key
}

/** Returns the queue of a key that begins with one after its kind. */
export function queueIdOfKey(key: Buffer): QueueId {
  return readQueueId(key, 1)
}

/**
 * Returns the `x` key of an expiry bucket.
 *
 * @param minute - counted since 1970.
 */
export function expiryKey(minute: number, queue: QueueId): Buffer {
  const key = Buffer.allocUnsafe(1 + 4 + queueIdBytes)
  key[0] = prefixes.x
  key.writeUInt32BE(minute, 1)
  writeQueueId(key, queue, 5)
  return key
}

/** Returns the minute and the queue of an `x` key. */
export function parseExpiryKey(key: Buffer): { readonly minute: number; readonly queue: QueueId } {
  return { minute: key.readUInt32BE(1), queue: readQueueId(key, 5) }
}

/**
 * Returns the half-day (12 hours) of a time, counted since 1970. Idempotency keys are deleted by half-days.
 *
 * @param timeMs - wall time in milliseconds.
 */
export function halfDayOf(timeMs: number): number {
  return Math.floor(timeMs / halfDayMs)
}

/**
 * Returns an `i` key.
 *
 * @param hash - the hash of the idempotency key, 16 bytes as a latin1 string.
 */
export function idempotencyKey(halfDay: number, queue: QueueId, hash: string): Buffer {
  const key = Buffer.allocUnsafe(idempotencyKeyBytes)
  key[0] = prefixes.i
  key.writeUInt32BE(halfDay, 1)
  writeQueueId(key, queue, 5)
  key.write(hash, 13, idempotencyHashBytes, 'latin1')
  return key
}

/** Returns the queue and the hash of an `i` key. */
export function parseIdempotencyKey(key: Buffer): {
  readonly queue: QueueId
  readonly hash: string
} {
  return { queue: readQueueId(key, 5), hash: key.toString('latin1', 13, idempotencyKeyBytes) }
}

/** Returns the lower bound of the `i` keys of a half-day. There are none before 1970, where a clock that was not set begins. */
export function startOfHalfDay(halfDay: number): Buffer {
  const key = Buffer.allocUnsafe(5)
  key[0] = prefixes.i
  key.writeUInt32BE(Math.max(0, halfDay), 1)
  return key
}

/** Returns the half-day of an `i` key. */
export function halfDayOfKey(key: Buffer): number {
  return key.readUInt32BE(1)
}

/** Returns the first possible key after `key`. */
export function keyAfter(key: Buffer): Buffer {
  return Buffer.concat([key, Buffer.from([0])])
}

/**
 * Returns the `k` key of a key of the private API.
 *
 * @param id - its id, 16 hexadecimal digits.
 */
export function accessKeyKey(id: string): Buffer {
  return Buffer.concat([startOf('k'), Buffer.from(id, 'hex')])
}

/** Returns the id of a `k` key. */
export function accessKeyIdOfKey(key: Buffer): string {
  return key.toString('hex', 1)
}

/**
 * Returns the `c` key of a recorded call.
 *
 * @param id - its id, 20 hexadecimal digits (audit-record.ts).
 */
export function auditKey(id: string): Buffer {
  return Buffer.concat([startOf('c'), Buffer.from(id, 'hex')])
}

/** Returns the id of a `c` key. */
export function auditIdOfKey(key: Buffer): string {
  return key.toString('hex', 1)
}

/** Returns the exclusive upper bound of the keys of `kind`. */
export function endOf(kind: RecordKind): Buffer {
  return Buffer.from([prefixes[kind] + 1])
}

/** Returns the lower bound of the keys of `kind`. */
export function startOf(kind: RecordKind): Buffer {
  return Buffer.from([prefixes[kind]])
}

/** Returns the `q` key under which the copy of a damaged record is stored. */
export function keptKey(key: Buffer): Buffer {
  return Buffer.concat([startOf('q'), key])
}

/** The kinds of records that may have the payload of an update: the update itself, and responses that repeat it. */
export const payloadKinds = ['u', 'v', 'd', 'a'] as const

/** The keys that an update may have, in the order in which it may get them. */
export const keysOfUpdate = [updateKey, leftUpdateKey, deadLetterKey] as const

/** Returns the first and the last possible key of a kind with the payloads of a queue, up to this id. */
export function payloadKeys(
  kind: (typeof payloadKinds)[number],
  queue: QueueId,
  lastId: number,
): { readonly first: Buffer; readonly last: Buffer } {
  if (kind === 'a') return { first: queueKey(kind, queue), last: queueKey(kind, queue) }
  return { first: keyWithId(kind, queue, 0), last: keyWithId(kind, queue, lastId) }
}

/** What a key says about its record, in the form of log fields. */
export interface RecordKeyFields {
  readonly record: string
  readonly botId?: number
  /** True for the /test/ queue. */
  readonly isTest?: boolean
  readonly updateId?: number
}

const recordNames: ReadonlyMap<number, string> = new Map([
  [prefixes.u, 'update'],
  [prefixes.s, 'ids and counts'],
  [prefixes.b, 'bot'],
  [prefixes.w, 'settings'],
  [prefixes.x, 'expiry'],
  [prefixes.i, 'idempotency key'],
  [prefixes.d, 'dead letter'],
  [prefixes.k, 'access key'],
  [prefixes.c, 'recorded call'],
  [prefixes.q, 'copy of a damaged record'],
  [prefixes.v, 'kept update'],
  [prefixes.l, 'run of kept updates'],
  [prefixes.n, 'counts of kept updates'],
  [prefixes.a, 'attempts'],
  [prefixes.j, 'replay'],
])

/** The kinds of records that belong to no queue. */
const queueless: ReadonlySet<number> = new Set([prefixes.k, prefixes.c, prefixes.q])

/**
 * Describes the record of a key. Accepts any bytes, because the key itself may be damaged.
 *
 * @returns the kind of the record and, if the key has the length of its kind, its bot and its update id.
 */
export function logFieldsOfKey(key: Buffer): RecordKeyFields {
  const kind = key[0] ?? 0
  const record = recordNames.get(kind) ?? 'unknown'
  const isTimed = kind === prefixes.x || kind === prefixes.i
  const at = isTimed ? 5 : 1
  const isOfQueue = record !== 'unknown' && !queueless.has(kind)
  if (!isOfQueue || key.length < at + queueIdBytes) return { record }
  const queue = readQueueId(key, at)
  const of = { record, botId: botIdOf(queue), isTest: isTestQueue(queue) }
  const hasUpdate = key.length === updateKeyBytes && kind !== prefixes.j
  return hasUpdate ? { ...of, updateId: updateIdOfKey(key) } : of
}

/**
 * Returns the id at which to continue after a read of a range of updates.
 *
 * @param found - what was read, in the order of the ids
 * @param to - the end of the range
 */
export function nextIdOf(found: readonly { readonly key: Buffer }[], to: number): number {
  const last = found.at(-1)
  return last === undefined ? to : updateIdOfKey(last.key) + 1
}

/** Returns whether a record has the payload of an update of one of these queues. */
export function isUpdateOf(key: Buffer, queues: readonly QueueId[]): boolean {
  const [kind] = key
  const hasPayload = payloadKinds.some((each) => each === String.fromCharCode(kind ?? 0))
  // The attempts of a queue have a shorter key.
  return hasPayload && key.length === updateKeyBytes && queues.includes(queueIdOfKey(key))
}
