/**
 * The loaded part of a queue, kept in the form in which it goes over the wire.
 *
 *   chunk   ,{"update_id":7,"message":{...}},{"update_id":8,"poll":{...}}          free
 *           ^ entry 7                       ^ entry 8
 *
 * An answer to getUpdates is a head, a few slices of chunks, and a tail: neighbours in a chunk are one slice.
 * A webhook body is one slice. Nothing is copied or joined per update after it has been appended. (Measured,
 * 100 x 300 B over node:http, CPU per request: slices 11-12 us, Buffer.concat 29, writev of 201 parts 49.)
 *
 * Chunks grow from 1 KiB to 64 KiB, so that a bot with one short update costs little. Full-size ones lie in
 * shared memory, where the compression threads read them without a copy. A chunk is freed by the garbage
 * collector with the last entry that refers to it.
 */
import {
  answerBytesMax,
  updateEnvelopeBytes,
  windowChunkBytesKept,
  windowChunkBytesMax,
  windowChunkBytesMin,
  windowHolesMax,
} from '../limits.ts'
import { sumWith } from './page.ts'
import type { QueuedUpdate } from './queued-update.ts'

interface Chunk {
  readonly bytes: Buffer
  used: number
}

export interface WindowUpdate {
  readonly updateId: number
  readonly typeNumber: number
  readonly acceptedAtS: number
  readonly expiresAtS: number
  readonly orderingKey: string
  readonly text: Buffer
}

export class WindowEntry implements QueuedUpdate {
  readonly updateId: number
  readonly typeNumber: number
  readonly acceptedAtS: number
  readonly expiresAtS: number
  readonly orderingKey: string
  /** Length of the text as it was stored. */
  readonly textBytes: number
  readonly chunk: Buffer
  /** Where the comma before the update stands in its chunk. */
  readonly start: number
  /** Behind its closing brace. */
  readonly end: number
  isRemoved = false

  constructor(update: WindowUpdate, place: { chunk: Buffer; start: number; end: number }) {
    this.updateId = update.updateId
    this.typeNumber = update.typeNumber
    this.acceptedAtS = update.acceptedAtS
    this.expiresAtS = update.expiresAtS
    this.orderingKey = update.orderingKey
    this.textBytes = update.text.length
    this.chunk = place.chunk
    this.start = place.start
    this.end = place.end
  }

  body(): Buffer {
    return this.chunk.subarray(this.start + 1, this.end)
  }
}

export interface Removed {
  count: number
  bytes: number
}

export interface RemovedEntries extends Removed {
  readonly updateIds: number[]
}

export class Window {
  /** Ascending ids. Those before `#head` are gone; removed ones behind it are skipped. */
  #entries: WindowEntry[] = []
  #head = 0
  #chunk: Chunk | undefined
  #nextChunkBytes = windowChunkBytesMin
  #liveCount = 0
  #bytes = 0
  /** No entry expires before. */
  #expiresFromS = Number.POSITIVE_INFINITY

  get liveCount(): number {
    return this.#liveCount
  }

  /** Bytes of the live entries in wire form. */
  get bytes(): number {
    return this.#bytes
  }

  /** Entries the list holds, removed ones included. */
  get heldCount(): number {
    return this.#entries.length
  }

  /** The oldest live entry. */
  first(): WindowEntry | undefined {
    return this.#entries[this.#head]
  }

  append(update: WindowUpdate): void {
    const prefix = `,{"update_id":${update.updateId},`
    const length = prefix.length + update.text.length + 1
    const chunk = this.#chunkFor(length)
    const start = chunk.used
    chunk.bytes.write(prefix, start, 'latin1')
    chunk.bytes.set(update.text, start + prefix.length)
    const end = start + length
    chunk.bytes[end - 1] = 0x7d
    chunk.used = end
    this.#entries.push(new WindowEntry(update, { chunk: chunk.bytes, start, end }))
    this.#liveCount += 1
    this.#bytes += length
    if (update.expiresAtS < this.#expiresFromS) this.#expiresFromS = update.expiresAtS
  }

  /** Live entries with ids above `afterId`, oldest first, at most `limit`. */
  after(afterId: number, limit: number): WindowEntry[] {
    const found: WindowEntry[] = []
    for (let index = this.#indexOf(afterId + 1); index < this.#entries.length; index++) {
      const entry = this.#entries[index]
      if (entry === undefined || found.length >= limit) break
      if (!entry.isRemoved) found.push(entry)
    }
    return found
  }

  /** The oldest entries that fit one answer, at most `limit`; undefined where one of them has expired. */
  page(limit: number, nowS: number): WindowEntry[] | undefined {
    const isWhole = this.#entries.length - this.#head === this.#liveCount
    const isSmall = this.#bytes + this.#liveCount * updateEnvelopeBytes < answerBytesMax
    // As almost always: nothing to be looked at one by one.
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
      if (sumBytes > answerBytesMax) break
      page.push(entry)
    }
    return page
  }

  /** Makes room for so many bytes of updates to come, so that they lie in one slice where that is possible. */
  reserve(bytes: number): void {
    const free = this.#chunk === undefined ? 0 : this.#chunk.bytes.length - this.#chunk.used
    if (free < bytes) {
      this.#chunk = chunkOf(Math.min(Math.max(bytes, windowChunkBytesMin), windowChunkBytesMax))
    }
  }

  /** The id of the live entry with exactly `newer` live ones behind it. */
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

  find(updateId: number): WindowEntry | undefined {
    const entry = this.#entries[this.#indexOf(updateId)]
    return entry?.updateId === updateId && !entry.isRemoved ? entry : undefined
  }

  /** Removes every entry below `floor`. */
  removeBelow(floor: number): Removed {
    const removed: Removed = { count: 0, bytes: 0 }
    for (;;) {
      const entry = this.#entries[this.#head]
      if (entry === undefined || entry.updateId >= floor) break
      if (!entry.isRemoved) this.#markRemoved(entry, removed)
      this.#head += 1
    }
    this.#trim()
    return removed
  }

  /** Removes these wherever they stand, and gives those that were here. */
  remove(updates: readonly { readonly updateId: number }[]): RemovedEntries {
    const removed: RemovedEntries = { count: 0, bytes: 0, updateIds: [] }
    for (const { updateId } of updates) {
      const entry = this.find(updateId)
      if (entry === undefined) continue
      this.#markRemoved(entry, removed)
      removed.updateIds.push(updateId)
    }
    this.#trim()
    return removed
  }

  clear(): void {
    this.#entries = []
    this.#expiresFromS = Number.POSITIVE_INFINITY
    this.#head = 0
    this.#liveCount = 0
    this.#bytes = 0
    if (this.#chunk !== undefined && this.#chunk.bytes.length > windowChunkBytesKept) {
      this.#chunk = undefined
    }
  }

  #markRemoved(entry: WindowEntry, removed: Removed): void {
    entry.isRemoved = true
    removed.count += 1
    removed.bytes += entry.textBytes
    this.#liveCount -= 1
    this.#bytes -= entry.end - entry.start
  }

  /**
   * Lets go of removed entries at the head, and of all others now and then: behind one update that cannot be
   * delivered, any number of delivered ones would keep their chunks alive.
   */
  #trim(): void {
    while (this.#entries[this.#head]?.isRemoved === true) this.#head += 1
    if (this.#head === this.#entries.length) {
      this.clear()
    } else if (this.#entries.length - this.#liveCount > Math.max(windowHolesMax, this.#liveCount)) {
      this.#entries = this.#entries.filter((entry) => !entry.isRemoved)
      this.#head = 0
    }
  }

  /** Index of the first entry, removed or not, whose id is not below `updateId`. */
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
    // It grows under a backlog and shrinks where the bot keeps up.
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

function chunkOf(size: number): Chunk {
  const bytes =
    size >= windowChunkBytesMax
      ? Buffer.from(new SharedArrayBuffer(size))
      : Buffer.allocUnsafeSlow(size)
  return { bytes, used: 0 }
}

/** Slices that, one behind the other, are the entries in wire form, each with its comma before it. */
export function wireSlices(entries: readonly WindowEntry[]): Buffer[] {
  const slices: Buffer[] = []
  let at = 0
  for (;;) {
    const first = entries[at]
    if (first === undefined) return slices
    let next: WindowEntry | undefined = first
    let end = first.start
    // More than once where an id is left out that never was in the chunk.
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
 * How far the entries from `first` on lie in one chunk with nothing between them. They were written in the order of
 * their ids, so that where no id is left out no byte is either, and few of them need to be looked at: each is
 * somewhere else in memory.
 */
function lastNeighbour(entries: readonly WindowEntry[], first: number): number {
  let low = first
  let step = 1
  while (areNeighbours(entries, first, low + step)) {
    low += step
    step *= 2
  }
  // The one at `low + step` is none.
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
