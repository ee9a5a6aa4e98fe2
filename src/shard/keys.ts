/**
 * The keys of a shard's database. On disk for ever: do not renumber, do not reorder. See docs/storage.md.
 *
 *   u queue_id update_id(8)      an update                      s queue_id        ids and counts of a queue
 *   b queue_id                   a bot (main namespace only)    w queue_id        webhook and allowed_updates
 *   x minute(4) queue_id         something of this queue may expire in this minute
 *   i halfday(4) queue_id hash(16)  idempotency key             d queue_id update_id  dead letter
 *   q and a whole key            a copy of the damaged record that was found under that key
 *
 * All numbers are big-endian, so that the order of the keys is the order of the numbers. queue_id is
 * 8 bytes: the namespace (0, or 1 for /test/), then the bot id in 7 bytes.
 */

/**
 * A queue as one exact number: the bot id, plus 2^52 for its /test/ namespace. Bot ids are below 2^52
 * (SPEC 2), so that this fits a double and costs a `Map` nothing.
 */
export type QueueId = number

const testNamespace = 2 ** 52

export function queueIdOf(botId: number, test: boolean): QueueId {
  return test ? botId + testNamespace : botId
}

export function botIdOf(queue: QueueId): number {
  return queue >= testNamespace ? queue - testNamespace : queue
}

export function isTestQueue(queue: QueueId): boolean {
  return queue >= testNamespace
}

export type RecordKind = 'u' | 's' | 'b' | 'w' | 'x' | 'i' | 'd' | 'q'

const prefixes: Readonly<Record<RecordKind, number>> = {
  u: 0x75,
  s: 0x73,
  b: 0x62,
  w: 0x77,
  x: 0x78,
  i: 0x69,
  d: 0x64,
  q: 0x71,
}

const queueIdBytes = 8
/** Behind every update id a key can hold. */
export const updateIdEnd = 2 ** 32 - 1
export const updateKeyBytes = 1 + queueIdBytes + 8
/** Of SHA-256, cut. */
export const idempotencyHashBytes = 16
const idempotencyKeyBytes = 1 + 4 + queueIdBytes + idempotencyHashBytes
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

/** Writes a `u` key into the 17 bytes at `offset`. */
export function writeUpdateKey(
  target: Buffer,
  offset: number,
  key: { readonly queue: QueueId; readonly updateId: number },
): void {
  target[offset] = prefixes.u
  writeQueueId(target, key.queue, offset + 1)
  target.writeUInt32BE(0, offset + 9)
  target.writeUInt32BE(key.updateId, offset + 13)
}

export function updateKey(queue: QueueId, updateId: number): Buffer {
  const key = Buffer.allocUnsafe(updateKeyBytes)
  writeUpdateKey(key, 0, { queue, updateId })
  return key
}

export function letterKey(queue: QueueId, updateId: number): Buffer {
  const key = updateKey(queue, updateId)
  key[0] = prefixes.d
  return key
}

/** Of an update's key, or a dead letter's. */
export function updateIdOfKey(key: Buffer): number {
  return key.readUInt32BE(13)
}

/** The key of a record of which a queue has one: `b`, `w` or `s`. */
export function queueKey(kind: 'b' | 'w' | 's', queue: QueueId): Buffer {
  const key = Buffer.allocUnsafe(1 + queueIdBytes)
  key[0] = prefixes[kind]
  writeQueueId(key, queue, 1)
  return key
}

export function queueIdOfQueueKey(key: Buffer): QueueId {
  return readQueueId(key, 1)
}

export function expiryKey(minute: number, queue: QueueId): Buffer {
  const key = Buffer.allocUnsafe(1 + 4 + queueIdBytes)
  key[0] = prefixes.x
  key.writeUInt32BE(minute, 1)
  writeQueueId(key, queue, 5)
  return key
}

export function parseExpiryKey(key: Buffer): { readonly minute: number; readonly queue: QueueId } {
  return { minute: key.readUInt32BE(1), queue: readQueueId(key, 5) }
}

/** Keys are removed by whole half-days, counted since 1970. */
export function halfDayOf(timeMs: number): number {
  return Math.floor(timeMs / halfDayMs)
}

/** `hash` is the key's, 16 bytes as latin1. */
export function idempotencyKey(halfDay: number, queue: QueueId, hash: string): Buffer {
  const key = Buffer.allocUnsafe(idempotencyKeyBytes)
  key[0] = prefixes.i
  key.writeUInt32BE(halfDay, 1)
  writeQueueId(key, queue, 5)
  key.write(hash, 13, idempotencyHashBytes, 'latin1')
  return key
}

/** The first possible idempotency key of a half-day. */
export function startOfHalfDay(halfDay: number): Buffer {
  const key = Buffer.allocUnsafe(5)
  key[0] = prefixes.i
  key.writeUInt32BE(halfDay, 1)
  return key
}

export function halfDayOfKey(key: Buffer): number {
  return key.readUInt32BE(1)
}

/** The first key that can come behind `key`. */
export function keyBehind(key: Buffer): Buffer {
  return Buffer.concat([key, Buffer.from([0])])
}

/** The first key behind every record of `kind`. */
export function endOf(kind: RecordKind): Buffer {
  return Buffer.from([prefixes[kind] + 1])
}

/** The first possible key of `kind`. */
export function startOf(kind: RecordKind): Buffer {
  return Buffer.from([prefixes[kind]])
}

/** Where a copy of a damaged record is kept. */
export function keptKey(key: Buffer): Buffer {
  return Buffer.concat([startOf('q'), key])
}

/** What a key says about its record, for the log. */
export interface KeyDescription {
  readonly record: string
  readonly botId?: number
  /** Of the /test/ queue. */
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
  [prefixes.q, 'copy of a damaged record'],
])

/**
 * Names the record of a key, of any bytes: the key may be damaged itself.
 *
 * @param key as it is in the database
 * @returns the kind of the record and, where the key has the length of its kind, its bot and its update
 */
export function describeKey(key: Buffer): KeyDescription {
  const kind = key[0] ?? 0
  const record = recordNames.get(kind) ?? 'unknown'
  const isTimed = kind === prefixes.x || kind === prefixes.i
  const at = isTimed ? 5 : 1
  if (record === 'unknown' || kind === prefixes.q || key.length < at + queueIdBytes)
    return { record }
  const queue = readQueueId(key, at)
  const of = { record, botId: botIdOf(queue), isTest: isTestQueue(queue) }
  const hasUpdate = kind === prefixes.u || kind === prefixes.d
  return hasUpdate && key.length === updateKeyBytes ? { ...of, updateId: updateIdOfKey(key) } : of
}
