/**
 * Counts the updates that the lanes of one bot hold, and says for which there is room. A lane may always load its first
 * update as long as a connection may be available for it, so that updates of any size are delivered.
 */
import assert from 'node:assert/strict'
import type { PendingUpdate } from '../delivery-source.ts'
import type { Lane } from './lane.ts'
import { mib, kib } from '../../kit/limits.ts'

export interface LaneWindowOptions {
  readonly maxConnections: number
  readonly windowUpdatesMax?: number
  readonly windowBytesMax?: number
  /** Shared by all webhooks of a worker. If absent, each counts for itself. */
  readonly loaded?: LoadedBytes | undefined
}

/**
 * A dispatcher holds this many updates of one bot, or twice max_connections if that is more, so that every connection has
 * its next updates ready: 25 with 40 connections. A single ordering key gets 275, which is more than a page
 * (`webhookReadUpdatesMax`); with 25 each page was read eight times, and a delivery took 2.5 times the CPU.
 */
export const webhookWindowUpdatesMax = 2_000
/**
 * These updates may have this many bytes: the first updates of eight keys at the largest size. If fewer keys hold updates
 * than there may be connections, each key still gets its first one.
 */
const webhookLoadedBytesMax = 4 * mib
/**
 * The loaded updates of one webhook may have this many bytes while the webhooks of the worker hold as much as they may
 * together. Chosen: a page of usual updates still fits, so only large ones are read again more often.
 */
const webhookTightBytesMax = 256 * kib

export class LaneWindow {
  #maxConnections = 0
  #updatesMax = 0
  readonly #windowUpdatesMax: number
  readonly #bytesMax: number
  #laneUpdatesMax = 0
  readonly #loaded: LoadedBytes | undefined
  #updates = 0
  #bytes = 0
  /** Lanes that hold updates: ready or in flight. */
  #activeLanes = 0

  constructor({ maxConnections, windowUpdatesMax, windowBytesMax, loaded }: LaneWindowOptions) {
    this.#windowUpdatesMax = windowUpdatesMax ?? webhookWindowUpdatesMax
    this.#bytesMax = windowBytesMax ?? webhookLoadedBytesMax
    this.#loaded = loaded
    this.fit(maxConnections)
  }

  /** Adapts to another number of connections. What is held beyond the new bounds stays until it is delivered. */
  fit(maxConnections: number): void {
    assert(maxConnections > 0, 'a webhook may have a connection')
    this.#maxConnections = maxConnections
    this.#updatesMax = Math.max(this.#windowUpdatesMax, maxConnections * 2)
    // This limit and the one of bytes keep lanes whose deliveries hang from filling the window while a connection is free.
    this.#laneUpdatesMax = Math.max(Math.floor(this.#updatesMax / maxConnections / 2), 1)
  }

  /** The number of updates. */
  get updates(): number {
    return this.#updates
  }

  /** The bytes of their texts. */
  get bytes(): number {
    return this.#bytes
  }

  get hasRoom(): boolean {
    if (this.#updates >= this.#updatesMax) return false
    return this.#bytes < this.#bytesMaxNow || this.#activeLanes < this.#maxConnections
  }

  /** Whether there is room for the next update of a lane. */
  hasRoomFor(lane: Lane): boolean {
    return this.hasRoom && (lane.first === undefined || this.#bytes < this.#bytesMaxNow)
  }

  /**
   * Whether a lane has its share: an equal one, and a quarter of what is left if all connections get theirs. So a lane holds
   * a page of updates if it is one of few, and is not read again after every few deliveries.
   */
  isFull(lane: Lane): boolean {
    const share = this.#laneUpdatesMax
    if (lane.bytes >= Math.max(this.#bytesMaxNow / this.#maxConnections, 1)) return true
    if (lane.size < share) return false
    const unused = Math.max(this.#maxConnections - this.#activeLanes, 0)
    return lane.size >= share + (this.#updatesMax - this.#updates - share * unused) / 4
  }

  /** Adds an update to a lane, as its last one. */
  append(lane: Lane, update: PendingUpdate): void {
    if (lane.first === undefined) this.#activeLanes++
    lane.append(update)
    this.#updates++
    this.#count(update.textBytes)
  }

  /** A new lane holds its first update. */
  added(lane: Lane): void {
    this.#activeLanes++
    this.#updates++
    this.#count(lane.bytes)
  }

  /** Removes the first update of a lane. Call `emptied` if nothing is left. */
  dropFirst(lane: Lane): void {
    this.#updates--
    this.#count(-(lane.first?.textBytes ?? 0))
    lane.dropFirst()
  }

  /** Removes and returns some updates of a lane, as `Lane.drop`. Call `emptied` if nothing is left. */
  drop(lane: Lane, isOver: (update: PendingUpdate) => boolean): readonly PendingUpdate[] {
    const dropped = lane.drop(isOver)
    this.#updates -= dropped.length
    for (const { textBytes } of dropped) this.#count(-textBytes)
    return dropped
  }

  /** A lane has lost its last update. */
  emptied(): void {
    this.#activeLanes--
  }

  /** Releases all updates of a lane, as `Lane.unload`. */
  unload(lane: Lane): void {
    assert(lane.size > 0, 'a lane that is unloaded holds an update')
    this.#updates -= lane.size
    this.#count(-lane.bytes)
    this.#activeLanes--
    lane.unload()
  }

  get #bytesMaxNow(): number {
    return Math.min(this.#bytesMax, this.#loaded?.bytesMaxOfEach ?? this.#bytesMax)
  }

  #count(bytes: number): void {
    this.#bytes += bytes
    this.#loaded?.add(bytes)
  }
}

/**
 * Counts the updates that all webhooks of a worker have loaded. One webhook may load 4 MiB, but thousands of endpoints may hang at
 * a time, each with large updates before it. Once all together have as much as they may, each may load only a little more than the
 * updates that are in flight.
 */
export class LoadedBytes {
  readonly #bytesMax: number
  readonly #tightBytesMax: number
  #bytes = 0

  /**
   * @param bytesMax - how much all webhooks may load without restriction
   * @param tightBytesMax - how much each may load after that
   */
  constructor(bytesMax: number, tightBytesMax: number = webhookTightBytesMax) {
    this.#bytesMax = bytesMax
    this.#tightBytesMax = tightBytesMax
  }

  /** How much one webhook may load now. */
  get bytesMaxOfEach(): number {
    return this.#bytes < this.#bytesMax ? Number.POSITIVE_INFINITY : this.#tightBytesMax
  }

  add(bytes: number): void {
    this.#bytes += bytes
  }
}
