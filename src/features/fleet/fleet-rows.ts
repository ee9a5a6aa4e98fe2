/**
 * The rows of a fleet index, in blocks of bytes:
 *
 *   0 queue (double) | 8 pending bytes (double) | 16 pending count (4) | 20 floor (4) | 24 id of the oldest update (4)
 *   | 28 its time (4) | 32 dead letters (4) | 36 flags (1) | 37 length of the username (1) | 38 username (32)
 *   | 70 time of the last poll (4) | 74 length of the first name (1) | 75 first name in lower case, UTF-8 (24)
 *   | 99 number of the webhook's host, 0 without a webhook (4) | 103
 *
 * A row takes about 150 bytes with its place in the map. As an object with a string it took 230, and the garbage collector
 * had all of them to copy: while an index was filled, V8 enlarged its space for young objects, which it then kept.
 */
import type { QueueId } from '../../shard/records/record-keys.ts'
import { HostNames, noHost } from './host-names.ts'

/** Chosen: a server may have 256 shards, and each takes at least one block of 26 kB. */
const rowsPerBlock = 256
const rowBytes = 103
const nameBytesMax = 32
/** Other names are kept beside the rows. */
const shortName = new RegExp(`^\\w{1,${nameBytesMax}}$`)

/** Chosen: holds nearly all first names. The others are kept beside the rows. */
const firstNameBytesMax = 24
const space = 0x20

/** Stands for a number that is not known. No update id and no time in seconds is as large. */
const unknown = 2 ** 32 - 1

/** The bits of the flags. */
const flag = { used: 1, registered: 2, paused: 8, due: 16 } as const

interface Block {
  readonly view: DataView
  readonly bytes: Buffer
  /** The usernames that have no room in their rows, by the place of the row. */
  readonly longNames: Map<number, string>
  /** Likewise the first names, in lower case. */
  readonly longFirstNames: Map<number, Buffer>
  /** Those of the whole shard. */
  readonly hosts: HostNames
}

/** The rows of one shard, each found by its queue. */
export class FleetRows implements Iterable<Row> {
  readonly #blocks: Block[] = []
  readonly #places = new Map<QueueId, number>()
  /** The places of rows that were removed. */
  readonly #free: number[] = []
  readonly #hosts = new HostNames()
  #placesUsed = 0

  /** The number of places, of which some are free. */
  get places(): number {
    return this.#placesUsed
  }

  /** Returns the row of a queue; undefined if it has none. */
  find(queue: QueueId): Row | undefined {
    const place = this.#places.get(queue)
    return place === undefined ? undefined : this.#row(place)
  }

  /** Returns the row at a place; undefined if the place is free. */
  at(place: number): Row | undefined {
    const row = this.#row(place)
    return row?.isUsed === true ? row : undefined
  }

  /** Returns the row of a queue, a new one if it has none. */
  of(queue: QueueId): Row {
    const place = this.#places.get(queue) ?? this.#free.pop() ?? this.#placesUsed++
    const row = this.#row(place) ?? this.#rowOfNewBlock()
    if (row.isUsed) return row
    this.#places.set(queue, place)
    row.begin(queue)
    return row
  }

  /** Removes the row of a queue, if it has one. */
  remove(queue: QueueId): void {
    const place = this.#places.get(queue)
    if (place === undefined) return
    this.#row(place)?.clear()
    this.#places.delete(queue)
    this.#free.push(place)
  }

  /** Visits all rows, also those that are added meanwhile. */
  *[Symbol.iterator](): Generator<Row> {
    for (let place = 0; place < this.#placesUsed; place++) {
      const row = this.at(place)
      if (row !== undefined) yield row
    }
  }

  #row(place: number): Row | undefined {
    const block = this.#blocks[Math.floor(place / rowsPerBlock)]
    return block && new Row(block, (place % rowsPerBlock) * rowBytes)
  }

  #rowOfNewBlock(): Row {
    const bytes = Buffer.alloc(rowsPerBlock * rowBytes)
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const block = {
      view,
      bytes,
      longNames: new Map<number, string>(),
      longFirstNames: new Map<number, Buffer>(),
      hosts: this.#hosts,
    }
    this.#blocks.push(block)
    return new Row(block, 0)
  }
}

/** A view of one row. Use it only until the next change of the rows. */
export class Row {
  readonly #block: Block
  readonly #view: DataView
  readonly #at: number

  constructor(block: Block, at: number) {
    this.#block = block
    this.#view = block.view
    this.#at = at
  }

  /** The place becomes the row of a queue. */
  begin(queue: QueueId): void {
    this.#view.setFloat64(this.#at, queue)
    this.#set(flag.used, true)
    this.oldestId = undefined
    this.oldestAtS = undefined
    this.polledAtS = undefined
  }

  /** The place becomes free. */
  clear(): void {
    this.webhookHost = undefined
    this.#block.longNames.delete(this.#at)
    this.#block.longFirstNames.delete(this.#at)
    this.#block.bytes.fill(0, this.#at, this.#at + rowBytes)
  }

  get isUsed(): boolean {
    return this.#has(flag.used)
  }

  get queue(): QueueId {
    return this.#view.getFloat64(this.#at)
  }

  get pendingBytes(): number {
    return this.#view.getFloat64(this.#at + 8)
  }

  set pendingBytes(bytes: number) {
    this.#view.setFloat64(this.#at + 8, bytes)
  }

  get pendingCount(): number {
    return this.#view.getUint32(this.#at + 16)
  }

  set pendingCount(count: number) {
    this.#view.setUint32(this.#at + 16, count)
  }

  get floor(): number {
    return this.#view.getUint32(this.#at + 20)
  }

  set floor(id: number) {
    this.#view.setUint32(this.#at + 20, id)
  }

  get oldestId(): number | undefined {
    return known(this.#view.getUint32(this.#at + 24))
  }

  set oldestId(id: number | undefined) {
    this.#view.setUint32(this.#at + 24, id ?? unknown)
  }

  /** Wall time in seconds at which the oldest pending update was accepted; undefined if none is pending or none was read yet. */
  get oldestAtS(): number | undefined {
    return known(this.#view.getUint32(this.#at + 28))
  }

  set oldestAtS(timeS: number | undefined) {
    this.#view.setUint32(this.#at + 28, timeS ?? unknown)
  }

  /** Wall time in seconds at which the queue was last polled; undefined if that is not known. */
  get polledAtS(): number | undefined {
    return known(this.#view.getUint32(this.#at + 70))
  }

  set polledAtS(timeS: number | undefined) {
    this.#view.setUint32(this.#at + 70, timeS ?? unknown)
  }

  get deadLetters(): number {
    return this.#view.getUint32(this.#at + 32)
  }

  set deadLetters(count: number) {
    this.#view.setUint32(this.#at + 32, count)
  }

  get hasWebhook(): boolean {
    return this.#host !== noHost
  }

  /** Undefined without a webhook. */
  get webhookHost(): string | undefined {
    return this.#block.hosts.name(this.#host)
  }

  set webhookHost(name: string | undefined) {
    const { hosts } = this.#block
    hosts.giveBack(this.#host)
    this.#view.setUint32(this.#at + 99, name === undefined ? noHost : hosts.take(name))
  }

  /**
   * Whether a word of the webhook's host begins with a text.
   *
   * @param lower - the text in lower case.
   */
  hasHostPrefix(lower: string): boolean {
    return this.#block.hosts.hasWordPrefix(this.#host, lower)
  }

  /** Whether the operator has paused deliveries. */
  get isPaused(): boolean {
    return this.#has(flag.paused)
  }

  set isPaused(is: boolean) {
    this.#set(flag.paused, is)
  }

  /** Whether the oldest update must be read. */
  get isOldestDue(): boolean {
    return this.#has(flag.due)
  }

  set isOldestDue(is: boolean) {
    this.#set(flag.due, is)
  }

  /** False for a /test/ queue, and for a queue without a registered bot. Costs far less than to read the username. */
  get isRegistered(): boolean {
    return this.#has(flag.registered)
  }

  get username(): string | undefined {
    if (!this.isRegistered) return undefined
    const { bytes, longNames } = this.#block
    const length = this.#view.getUint8(this.#at + 37)
    const begin = this.#at + 38
    return length === 0 ? longNames.get(this.#at) : bytes.toString('latin1', begin, begin + length)
  }

  set username(name: string | undefined) {
    const { bytes, longNames } = this.#block
    const isShort = name !== undefined && shortName.test(name)
    this.#set(flag.registered, name !== undefined)
    this.#view.setUint8(this.#at + 37, isShort ? name.length : 0)
    if (isShort) bytes.write(name, this.#at + 38, 'latin1')
    if (isShort || name === undefined) longNames.delete(this.#at)
    else longNames.set(this.#at, name)
  }

  /** Whether this is the username, in any case. */
  hasName(lower: string): boolean {
    const length = this.#view.getUint8(this.#at + 37)
    if (length === 0) return this.username?.toLowerCase() === lower
    return length === lower.length && this.hasNamePrefix(lower)
  }

  /**
   * Whether the username begins with a text, in any case. A string of each name would take twice the time.
   *
   * @param lower - the text in lower case.
   */
  hasNamePrefix(lower: string): boolean {
    const length = this.#view.getUint8(this.#at + 37)
    if (length === 0) return this.username?.toLowerCase().startsWith(lower) === true
    if (lower.length > length) return false
    for (let nth = 0; nth < lower.length; nth++) {
      const byte = this.#view.getUint8(this.#at + 38 + nth)
      const isUpper = byte >= 0x41 && byte <= 0x5a
      if ((isUpper ? byte + 0x20 : byte) !== lower.charCodeAt(nth)) return false
    }
    return true
  }

  /** Only searched, so it is kept in lower case. */
  set firstName(name: string | undefined) {
    const { bytes, longFirstNames } = this.#block
    const lower = Buffer.from(name?.toLowerCase() ?? '')
    const isShort = lower.length <= firstNameBytesMax
    this.#view.setUint8(this.#at + 74, isShort ? lower.length : 0)
    if (isShort) {
      lower.copy(bytes, this.#at + 75)
      longFirstNames.delete(this.#at)
    } else longFirstNames.set(this.#at, lower)
  }

  /**
   * Whether a word of the first name begins with a text, in any case.
   *
   * @param lower - the text in lower case, as UTF-8.
   */
  hasWordPrefix(lower: Buffer): boolean {
    const { bytes, longFirstNames } = this.#block
    const begin = this.#at + 75
    const length = this.#view.getUint8(this.#at + 74)
    if (length > 0) return hasWordPrefix({ bytes, begin, end: begin + length }, lower)
    const long = longFirstNames.get(this.#at)
    return long !== undefined && hasWordPrefix({ bytes: long, begin: 0, end: long.length }, lower)
  }

  /** Whether the row tells nothing. */
  get isEmpty(): boolean {
    const isNothing = this.pendingCount === 0 && this.deadLetters === 0
    return isNothing && !this.hasWebhook && !this.#has(flag.registered | flag.paused)
  }

  get #host(): number {
    return this.#view.getUint32(this.#at + 99)
  }

  /** Whether one of the bits is set. */
  #has(bits: number): boolean {
    return (this.#view.getUint8(this.#at + 36) & bits) !== 0
  }

  #set(bit: number, is: boolean): void {
    const flags = this.#view.getUint8(this.#at + 36)
    this.#view.setUint8(this.#at + 36, is ? flags | bit : flags & ~bit)
  }
}

/** Part of a buffer: a view of it for each row would be one more object each. */
interface Part {
  readonly bytes: Buffer
  readonly begin: number
  readonly end: number
}

function hasWordPrefix({ bytes, begin, end }: Part, word: Buffer): boolean {
  for (let at = begin; at + word.length <= end; at++) {
    if (at > begin && bytes[at - 1] !== space) continue
    let same = 0
    while (same < word.length && bytes[at + same] === word[same]) same++
    if (same === word.length) return true
  }
  return false
}

function known(stored: number): number | undefined {
  return stored === unknown ? undefined : stored
}
