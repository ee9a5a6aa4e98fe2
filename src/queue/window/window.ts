/**
 * The loaded part of a queue, kept in the form in which it is sent.
 *
 *   chunk   ,{"update_id":7,"message":{...}},{"update_id":8,"poll":{...}}          free
 *           ^ entry 7                       ^ entry 8
 *
 * A getUpdates reply is a head, a few slices of chunks, and a tail: entries that are adjacent in a chunk are one slice. A
 * webhook body is one slice. No update is copied or joined after it was appended. (Measured, 100 x 300 B over node:http,
 * CPU per request: slices 11-12 us, Buffer.concat 29, writev of 201 parts 49.)
 *
 * Chunks grow from 1 KiB to 64 KiB, so that a bot with one short update costs little. Full-size chunks are in shared
 * memory, where the compression thread reads them without a copy. The garbage collector frees a chunk with the last entry
 * that refers to it.
 */
import assert from 'node:assert/strict'
import { responseBytesMax, updateEnvelopeBytes, windowChunkBytesMax } from '../limits.ts'
import { sumWith } from './page.ts'
import type { QueuedUpdate } from '../queued-update.ts'
import { addStored, type StoredRun } from '../kept/stored-runs.ts'
import { kib } from '../../kit/limits.ts'

interface Chunk {
  readonly bytes: Buffer
  used: number
}

/** An update that can be appended to a window. */
export interface WindowUpdate {
  readonly updateId: number
  readonly typeNumber: number
  readonly acceptedAtS: number
  /** Wall time in seconds. */
  readonly expiresAtS: number
  readonly orderingKey: string
  readonly traceparent?: string | undefined
  readonly text: Buffer
}

interface Extent {
  readonly chunk: Buffer
  readonly start: number
  readonly end: number
  readonly textBytes: number
  readonly storedAfterMs: number
}

/** One update of a window: its fields, and its place in a chunk. */
export class WindowEntry implements QueuedUpdate {
  readonly updateId: number
  readonly typeNumber: number
  readonly acceptedAtS: number
  readonly expiresAtS: number
  readonly orderingKey: string
  readonly traceparent: string | undefined
  /** The length of the text as it was stored, in bytes. */
  readonly textBytes: number
  chunk: Buffer
  /** The position of the comma before the update. */
  start: number
  /** The position after the closing brace of the update. */
  end: number
  isRemoved = false
  /** How long after `acceptedAtS` the update was stored: a small integer, which takes no memory of its own. 0 if unknown. */
  readonly storedAfterMs: number

  constructor(update: Omit<WindowUpdate, 'text'>, extent: Extent) {
    this.updateId = update.updateId
    this.typeNumber = update.typeNumber
    this.acceptedAtS = update.acceptedAtS
    this.expiresAtS = update.expiresAtS
    this.orderingKey = update.orderingKey
    this.traceparent = update.traceparent
    this.textBytes = extent.textBytes
    this.chunk = extent.chunk
    this.start = extent.start
    this.end = extent.end
    this.storedAfterMs = extent.storedAfterMs
  }

  get storedAtMs(): number {
    return this.acceptedAtS * 1_000 + this.storedAfterMs
  }

  /** Returns `{"update_id":N,"<type>":{...}}` as a view of the chunk. */
  body(): Buffer {
    return this.chunk.subarray(this.start + 1, this.end)
  }

  /** Copies the update out of its chunk, so that it keeps nothing else in memory. */
  moveOut(): void {
    this.chunk = Buffer.from(this.chunk.subarray(this.start, this.end))
    this.end -= this.start
    this.start = 0
  }
}

/** The number of removed updates, the bytes of their texts, and when they were stored. */
export interface Removed {
  count: number
  bytes: number
  readonly stored: StoredRun[]
  /** Those that have a trace, if any. */
  traced?: WindowEntry[]
}

/** Removed updates with their ids. */
export interface RemovedEntries extends Removed {
  readonly updateIds: number[]
}

/** Memory for loaded updates begins with a chunk of this size and grows, so that a bot with one short update costs little. */
const windowChunkBytesMin = 1 * kib
/**
 * A chunk up to this size is kept when the window becomes empty, as most windows do all the time, so that the next update
 * needs no new one.
 */
const windowChunkBytesKept = 2 * kib
/**
 * A window keeps up to this many removed entries in its middle, or as many as it has live ones, before it is compacted:
 * so compaction is rare and removes at least half.
 */
const windowHolesMax = 256

/** The loaded updates of one queue, in ascending order of their ids. Pure: it neither reads nor writes the disk. */
export class Window {
  /** In ascending order of ids. Entries before `#head` are gone; removed entries after it are skipped. */
  #entries: WindowEntry[] = []
  #head = 0
  #chunk: Chunk | undefined
  #nextChunkBytes = windowChunkBytesMin
  #liveCount = 0
  #bytes = 0
  /** The bytes of removed entries that may still be in memory, because live ones are in the same chunks. */
  #holeBytes = 0
  /** No entry expires before this time; wall time in seconds. */
  #expiresFromS = Number.POSITIVE_INFINITY

  get liveCount(): number {
    return this.#liveCount
  }

  /** The bytes of the live entries in wire form. */
  get bytes(): number {
    return this.#bytes
  }

  /** The memory of the live entries: their bytes, and those of removed ones that share their chunks. */
  get heldBytes(): number {
    return this.#bytes + this.#holeBytes
  }

  /** The number of entries in the list, including removed ones. */
  get heldCount(): number {
    return this.#entries.length
  }

  /** The oldest live entry. */
  first(): WindowEntry | undefined {
    return this.#entries[this.#head]
  }

  /**
   * Copies an update to the end. Its id must be above all others.
   *
   * @param storedAtMs - when it was stored, if more is known than the second
   */
  append(update: WindowUpdate, storedAtMs?: number): void {
    const prefix = `,{"update_id":${update.updateId},`
    const { text } = update
    const length = prefix.length + text.length + 1
    const chunk = this.#chunkFor(length)
    const start = chunk.used
    chunk.bytes.write(prefix, start, 'latin1')
    chunk.bytes.set(text, start + prefix.length)
    const end = start + length
    chunk.bytes[end - 1] = 0x7d
    chunk.used = end
    const textBytes = text.length
    const storedAfterMs =
      storedAtMs === undefined ? 0 : Math.max(storedAtMs - update.acceptedAtS * 1_000, 0)
    this.#entries.push(
      new WindowEntry(update, { chunk: chunk.bytes, start, end, textBytes, storedAfterMs }),
    )
    this.#liveCount += 1
    this.#bytes += length
    if (update.expiresAtS < this.#expiresFromS) this.#expiresFromS = update.expiresAtS
  }

  /**
   * Returns live entries with ids above `afterId`, oldest first.
   *
   * @param limit - the maximum number of entries
   */
  after(afterId: number, limit: number): WindowEntry[] {
    const found: WindowEntry[] = []
    for (let index = this.#indexOf(afterId + 1); index < this.#entries.length; index++) {
      const entry = this.#entries[index]
      if (entry === undefined || found.length >= limit) break
      if (!entry.isRemoved) found.push(entry)
    }
    return found
  }

  /**
   * Returns the oldest entries that fit one reply.
   *
   * @param limit - the maximum number of entries
   * @param nowS - wall time in seconds
   * @returns undefined if one of them has expired; the caller removes expired entries and tries again
   */
  page(limit: number, nowS: number): WindowEntry[] | undefined {
    const isWhole = this.#entries.length - this.#head === this.#liveCount
    const isSmall = this.#bytes + this.#liveCount * updateEnvelopeBytes < responseBytesMax
    // The usual case: no entry needs to be checked individually.
    if (isWhole && isSmall && nowS < this.#expiresFromS) {
      return this.#entries.slice(this.#head, this.#head + limit)
    }
    const page: WindowEntry[] = []
    let sumBytes = 0
    for (let index = this.#head; index < this.#entries.length; index++) {
      const entry = this.#entries[index]
      if (entry === undefined || page.length >= limit) break
      if (entry.isRemoved) continue
      if (entry.expiresAtS <= nowS) return undefined
      sumBytes = sumWith(sumBytes, entry.textBytes)
      if (sumBytes > responseBytesMax) break
      page.push(entry)
    }
    return page
  }

  /**
   * Reserves memory for updates that are about to be appended, so that they form one slice if possible.
   *
   * @param bytes - their size in wire form
   */
  reserve(bytes: number): void {
    const free = this.#chunk === undefined ? 0 : this.#chunk.bytes.length - this.#chunk.used
    if (free < bytes) {
      this.#chunk = chunkOf(Math.min(Math.max(bytes, windowChunkBytesMin), windowChunkBytesMax))
    }
  }

  /** Returns the id of the live entry that has exactly `newer` live entries after it. */
  idBeforeNewest(newer: number): number | undefined {
    let left = newer
    for (let index = this.#entries.length - 1; index >= this.#head; index--) {
      const entry = this.#entries[index]
      if (entry === undefined || entry.isRemoved) continue
      if (left === 0) return entry.updateId
      left -= 1
    }
    return undefined
  }

  /** Returns the live entry with this id. */
  find(updateId: number): WindowEntry | undefined {
    const entry = this.#entries[this.#indexOf(updateId)]
    return entry?.updateId === updateId && !entry.isRemoved ? entry : undefined
  }

  /** Removes every entry with an id below `floor`. */
  removeBelow(floor: number): Removed {
    const removed: Removed = { count: 0, bytes: 0, stored: [] }
    for (;;) {
      const entry = this.#entries[this.#head]
      if (entry === undefined || entry.updateId >= floor) break
      if (!entry.isRemoved) this.#markRemoved(entry, removed)
      this.#passHead(entry)
    }
    this.#trim()
    return removed
  }

  /**
   * Removes these updates wherever they are.
   *
   * @returns the updates that were in the window
   */
  remove(updates: readonly { readonly updateId: number }[]): RemovedEntries {
    const removed: RemovedEntries = { count: 0, bytes: 0, stored: [], updateIds: [] }
    for (const { updateId } of updates) {
      const entry = this.find(updateId)
      if (entry === undefined) continue
      this.#markRemoved(entry, removed)
      removed.updateIds.push(updateId)
    }
    this.#trim()
    return removed
  }

  /** Removes all entries. Keeps a small chunk for the next update. */
  clear(): void {
    this.#entries = []
    this.#expiresFromS = Number.POSITIVE_INFINITY
    this.#head = 0
    this.#liveCount = 0
    this.#bytes = 0
    this.#holeBytes = 0
    if (this.#chunk !== undefined && this.#chunk.bytes.length > windowChunkBytesKept) {
      this.#chunk = undefined
    }
  }

  #markRemoved(entry: WindowEntry, removed: Removed): void {
    entry.isRemoved = true
    removed.count += 1
    removed.bytes += entry.textBytes
    addStored(removed.stored, entry.storedAtMs)
    if (entry.traceparent !== undefined) (removed.traced ??= []).push(entry)
    this.#liveCount -= 1
    this.#bytes -= entry.end - entry.start
    this.#holeBytes += entry.end - entry.start
  }

  /** A removed entry at the head holds no memory of others. */
  #passHead(entry: WindowEntry): void {
    this.#head += 1
    this.#holeBytes -= entry.end - entry.start
  }

  /**
   * Drops removed entries at the head, and from time to time all others. Otherwise one update that cannot be delivered
   * would keep alive the chunks of all delivered updates after it.
   */
  #trim(): void {
    for (let first = this.first(); first?.isRemoved === true; first = this.first()) {
      this.#passHead(first)
    }
    if (this.#head === this.#entries.length) {
      this.clear()
    } else if (this.#entries.length - this.#liveCount > Math.max(windowHolesMax, this.#liveCount)) {
      this.#entries = this.#entries.filter((entry) => !entry.isRemoved)
      this.#head = 0
      this.#holeBytes = chunkBytesOf(this.#entries) - this.#bytes
    }
  }

  /** Returns the index of the first entry, removed or not, with an id of at least `updateId`. */
  #indexOf(updateId: number): number {
    let low = this.#head
    let high = this.#entries.length
    while (low < high) {
      const middle = (low + high) >>> 1
      const entry = this.#entries[middle]
      if (entry !== undefined && entry.updateId < updateId) low = middle + 1
      else high = middle
    }
    return low
  }

  #chunkFor(length: number): Chunk {
    if (this.#chunk !== undefined && this.#chunk.bytes.length - this.#chunk.used >= length) {
      return this.#chunk
    }
    // The size grows while there is a backlog and shrinks while the bot keeps up.
    let size =
      this.#liveCount > 0
        ? this.#nextChunkBytes
        : Math.max(this.#nextChunkBytes / 4, windowChunkBytesMin)
    while (size < length && size < windowChunkBytesMax) size *= 2
    this.#nextChunkBytes = Math.min(size * 2, windowChunkBytesMax)
    this.#chunk = chunkOf(Math.max(size, length))
    return this.#chunk
  }
}

/** Returns the size of all chunks that the entries are in. */
function chunkBytesOf(entries: readonly WindowEntry[]): number {
  let bytes = 0
  let last: Buffer | undefined
  for (const { chunk } of entries) {
    if (chunk !== last) bytes += chunk.length
    last = chunk
  }
  return bytes
}

function chunkOf(size: number): Chunk {
  const bytes =
    size >= windowChunkBytesMax
      ? Buffer.from(new SharedArrayBuffer(size))
      : Buffer.allocUnsafeSlow(size)
  return { bytes, used: 0 }
}

/**
 * Returns slices that, one after the other, are the entries in wire form, each entry with its leading comma.
 *
 * @param entries - live entries in the order of their ids
 */
export function wireSlices(entries: readonly WindowEntry[]): Buffer[] {
  const slices: Buffer[] = []
  let at = 0
  for (;;) {
    const first = entries[at]
    if (first === undefined) return slices
    let next: WindowEntry | undefined = first
    let end = first.start
    // This loop repeats if an id is missing that was never in the chunk: the bytes are adjacent although the ids are not.
    while (next?.chunk === first.chunk && next.start === end) {
      const last = lastNeighbour(entries, at)
      end = entries[last]?.end ?? end
      at = last + 1
      next = entries[at]
    }
    slices.push(first.chunk.subarray(first.start, end))
  }
}

/**
 * Returns the index of the last entry up to which the entries from `first` on are adjacent in one chunk. Entries are
 * written in the order of their ids, so consecutive ids mean adjacent bytes. A search by doubling steps touches few
 * entries; each of them is elsewhere in memory.
 */
function lastNeighbour(entries: readonly WindowEntry[], first: number): number {
  let low = first
  let step = 1
  while (areNeighbours(entries, first, low + step)) {
    low += step
    step *= 2
  }
  // The entry at `low + step` is not adjacent.
  while (step > 1) {
    step /= 2
    if (areNeighbours(entries, first, low + step)) low += step
  }
  return low
}

function areNeighbours(entries: readonly WindowEntry[], first: number, last: number): boolean {
  const from = entries[first]
  const to = entries[last]
  return (
    from !== undefined &&
    to !== undefined &&
    from.chunk === to.chunk &&
    to.updateId - from.updateId === last - first
  )
}

/** Counts the bytes of loaded updates in all windows of a worker against their limit. */
export class WindowBudget {
  readonly bytesMax: number
  #usedBytes = 0

  constructor(bytesMax: number) {
    assert(bytesMax >= 0, 'a budget is no debt')
    this.bytesMax = bytesMax
  }

  get usedBytes(): number {
    return this.#usedBytes
  }

  /** Once the budget is spent, new updates stay on disk until they are read. */
  get isSpent(): boolean {
    return this.#usedBytes >= this.bytesMax
  }

  add(bytes: number): void {
    this.#usedBytes += bytes
  }
}
