/**
 * What the keys of a shard's database are made of, each after the letter of its kind (kinds.ts). They are stored permanently: do
 * not renumber, do not reorder. All numbers are big-endian, so that keys sort in numeric order. A queue has 8 bytes: the namespace
 * (0, or 1 for /test/), then the bot id in 7 bytes. An id has 8 bytes, too, of which the first four are 0.
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

/** Exclusive upper bound of update ids: larger than every id that a key can hold. */
export const updateIdEnd = 2 ** 32 - 1
/** Length of a hash: SHA-256 cut to 16 bytes. */
export const idempotencyHashBytes = 16

/** A part of a key. */
export interface RecordKeyPart<Name extends string, Value> {
  readonly name: Name
  readonly bytes: number
  write(key: Buffer, value: Value, at: number): void
  read(key: Buffer, at: number): Value
  /** What it says about the record to people, after the name of the kind. */
  words(value: Value): string
}

export const queuePart: RecordKeyPart<'queue', QueueId> = {
  name: 'queue',
  bytes: 8,
  write: writeQueueId,
  read: readQueueId,
  words: (queue) => ` of bot ${botIdOf(queue)}${isTestQueue(queue) ? ' (/test/)' : ''}`,
}

/** An id of one of the things of a queue. */
export function idPart<Name extends string>(name: Name): RecordKeyPart<Name, number> {
  return {
    name,
    bytes: 8,
    write(key, id, at) {
      key.writeUInt32BE(0, at)
      key.writeUInt32BE(id, at + 4)
    },
    read: (key, at) => key.readUInt32BE(at + 4),
    words: (id) => ` ${id}`,
  }
}

/** A time, counted since 1970 in units of its own. */
export function timePart<Name extends string>(
  name: Name,
  words: (time: number) => string,
): RecordKeyPart<Name, number> {
  return {
    name,
    bytes: 4,
    // A clock that was not set begins in 1970.
    write: (key, time, at) => void key.writeUInt32BE(Math.max(0, time), at),
    read: (key, at) => key.readUInt32BE(at),
    words,
  }
}

/** The hash of an idempotency key, as a latin1 string. */
export const hashPart: RecordKeyPart<'hash', string> = {
  name: 'hash',
  bytes: idempotencyHashBytes,
  write: (key, hash, at) => void key.write(hash, at, idempotencyHashBytes, 'latin1'),
  read: (key, at) => key.toString('latin1', at, at + idempotencyHashBytes),
  words: (hash) => ` ${Buffer.from(hash, 'latin1').toString('hex')}`,
}

/** An id of so many bytes, as hexadecimal digits. */
export function hexPart(bytes: number): RecordKeyPart<'id', string> {
  return {
    name: 'id',
    bytes,
    write: (key, id, at) => void key.write(id, at, bytes, 'hex'),
    read: (key, at) => key.toString('hex', at, at + bytes),
    words: (id) => ` ${id}`,
  }
}

/**
 * Returns the id of a key that is made of a queue and an id. Updates are read in bulk, and `RecordKind.fields` takes ten times as
 * long.
 */
export function updateIdOfKey(key: Buffer): number {
  return key.readUInt32BE(13)
}

/** Returns the queue of a key that begins with one after its letter. */
export function queueIdOfKey(key: Buffer): QueueId {
  return readQueueId(key, 1)
}

const halfDayMs = 43_200_000

/**
 * Returns the half-day (12 hours) of a time, counted since 1970. Idempotency keys are deleted by half-days.
 *
 * @param timeMs - wall time in milliseconds.
 */
export function halfDayOf(timeMs: number): number {
  return Math.floor(timeMs / halfDayMs)
}

/** Returns the first possible key after `key`. */
export function keyAfter(key: Buffer): Buffer {
  return Buffer.concat([key, Buffer.from([0])])
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
