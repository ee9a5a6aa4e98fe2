/**
 * A filter in memory over the idempotency keys of one half-day: it knows for certain that a key is new.
 *
 * It is a Bloom filter in layers, each of twice the size of the one before it, because the number of keys is not known
 * before. Only the last layer takes keys, and a key is searched in all of them.
 *
 *   layer 0  16 KiB, 8,192 keys     layer 1  32 KiB, 16,384 keys     ...     layer 8  4 MiB, 2,097,152 keys
 *
 * A key sets 6 bits and a layer has 16 bits for each key, so a full layer takes one new key in 1,000 for a known one. All
 * layers together take 2 to 4 bytes a key. A table of 32-bit fingerprints is as fast and hardly ever wrong, but takes 5 to
 * 11 bytes a key.
 */
import type { QueueId } from '../records/record-keys.ts'
import { mib } from '../../kit/limits.ts'

const firstLayerBits = 17
const bitsPerKey = 16
const bitsSetPerKey = 6

/** Where the bits of a key are in each layer: at `start`, and then every `step` bits. */
export interface KeyPlace {
  readonly start: number
  readonly step: number
}

/**
 * Returns the place of a key in the filters of its shard.
 *
 * @param keyHash - the hash of the key, 16 bytes as a latin1 string.
 */
export function keyPlace(queue: QueueId, keyHash: string): KeyPlace {
  return {
    start: startOf(queue, wordOf(keyHash, 0)),
    step: stepOf(queue, wordOf(keyHash, 4)),
  }
}

// A producer may send the same key to many bots, and these are different keys. Both multipliers spread small numbers.

/** Returns the `start` of a key whose hash begins with this word. */
export function startOf(queue: QueueId, word: number): number {
  return word ^ Math.imul(queue, 0x9e3779b1)
}

/** Returns the `step` of a key whose hash has this word second. */
export function stepOf(queue: QueueId, word: number): number {
  return (word ^ Math.imul(queue, 0x85ebca77)) | 1
}

/**
 * The filter over the keys of one half-day of a shard takes at most this many bytes of memory, enough for 4 million keys, 100
 * a second. Four half-days of four shards take 128 MiB at the most, while their keys take 4 GB on disk. A half-day with more
 * keys has no filter, and its keys are looked up on disk.
 */
const keyFilterBytesMax = 8 * mib

export class IdempotencyKeyFilter {
  readonly #bytesMax: number
  #layers: Uint32Array[] = []
  #bytes = 0
  /** Number of keys that the last layer still takes. */
  #room = 0
  #isFull = false

  /** @param bytesMax - size of all layers together. */
  constructor(bytesMax: number = keyFilterBytesMax) {
    this.#bytesMax = bytesMax
  }

  /** Size in memory. */
  get bytes(): number {
    return this.#bytes
  }

  /** Whether there were more keys than the filter can hold. It then takes every key for one that it may have. */
  get isFull(): boolean {
    return this.#isFull
  }

  add({ start, step }: KeyPlace): void {
    if (this.#room === 0) this.#grow()
    const layer = this.#layers.at(-1)
    if (layer === undefined) return
    this.#room -= 1
    const mask = layer.length * 32 - 1
    for (let bit = 0, at = start; bit < bitsSetPerKey; bit++, at = (at + step) | 0) {
      const word = (at & mask) >>> 5
      layer[word] = (layer[word] ?? 0) | (1 << (at & 31))
    }
  }

  /** Returns false only for a key that was not added. */
  mayHave(place: KeyPlace): boolean {
    if (this.#isFull) return true
    for (const layer of this.#layers) if (isIn(layer, place)) return true
    return false
  }

  #grow(): void {
    if (this.#isFull) return
    const bits = 2 ** (firstLayerBits + this.#layers.length)
    if (this.#bytes + bits / 8 > this.#bytesMax) {
      this.#isFull = true
      this.#layers = []
      this.#bytes = 0
      return
    }
    this.#layers.push(new Uint32Array(bits / 32))
    this.#bytes += bits / 8
    this.#room = bits / bitsPerKey
  }
}

function isIn(layer: Uint32Array, { start, step }: KeyPlace): boolean {
  const mask = layer.length * 32 - 1
  for (let bit = 0, at = start; bit < bitsSetPerKey; bit++, at = (at + step) | 0) {
    if (((layer[(at & mask) >>> 5] ?? 0) & (1 << (at & 31))) === 0) return false
  }
  return true
}

/** Returns four bytes of a hash as a number of 32 bits. */
function wordOf(hash: string, at: number): number {
  return (
    hash.charCodeAt(at) |
    (hash.charCodeAt(at + 1) << 8) |
    (hash.charCodeAt(at + 2) << 16) |
    (hash.charCodeAt(at + 3) << 24)
  )
}
