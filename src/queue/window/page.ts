/**
 * Builds one getUpdates reply as bytes: decides how many updates fit (protocol.md §5) and assembles the body.
 *
 * Pure, and used in two places: by the owner, which replies with slices of its window, and by the Piscina thread that
 * assembles and compresses large replies.
 *
 * A window holds its updates in wire form, one after the other, each with its leading comma:
 *
 *   pieces   ,{"update_id":7,"message":{...}},{"update_id":8,"poll":{...}} | ,{"update_id":9,...}
 *   body     head without the first comma, as many complete updates as fit, tail
 */
import assert from 'node:assert/strict'
import { responseBytesMax, updateEnvelopeBytes } from '../limits.ts'

/** Everything that `assemblePage` needs to build a reply. */
export interface PageSource {
  /** The bytes before the first update: `{"ok":true,"result":[`. */
  readonly head: Uint8Array
  /** The bytes after the last update: `]}`. */
  readonly tail: Uint8Array
  /** The maximum number of updates. */
  readonly limit: number
  /** Updates in wire form. A piece ends where an update ends. */
  readonly pieces: readonly Uint8Array[]
  /** For each update in the pieces, in order: its bytes in wire form, including the comma. */
  readonly entryBytes: Int32Array
  /** For each update in the pieces, in order: the bytes of its text alone, `"message":{...}`. */
  readonly textBytes: Int32Array
}

/** A complete reply and the number of updates in it. */
export interface Page {
  readonly body: Buffer
  readonly updates: number
}

/**
 * Counts how many updates, from the first one on, make one reply. The sum of (50 + text length) stays below 4 MiB, as in
 * the reference server; a first update always fits.
 *
 * @param textBytes - the text length of each update, in bytes
 * @param limit - the maximum number of updates
 */
export function countThatFit(textBytes: ArrayLike<number>, limit: number): number {
  const most = Math.min(textBytes.length, limit)
  let count = 0
  let sumBytes = 0
  while (count < most) {
    sumBytes = sumWith(sumBytes, textBytes[count] ?? 0)
    if (sumBytes > responseBytesMax) break
    count++
  }
  return count
}

/**
 * Adds one update to the size of a reply.
 *
 * @param sumBytes - the size so far; 0 for an empty reply
 * @param textBytes - the text length of the update, in bytes
 * @returns the new size, or a value above `responseBytesMax` if the update does not fit
 */
export function sumWith(sumBytes: number, textBytes: number): number {
  const nextBytes = sumBytes + updateEnvelopeBytes + textBytes
  if (nextBytes < responseBytesMax) return nextBytes
  return sumBytes === 0 ? responseBytesMax : Number.POSITIVE_INFINITY
}

/**
 * Assembles a reply from as many updates of `source` as fit.
 *
 * @throws AssertionError if the pieces hold fewer bytes than `entryBytes` says.
 */
export function assemblePage(source: PageSource): Page {
  const updates = countThatFit(source.textBytes, source.limit)
  let wireBytes = 0
  for (const entryBytes of source.entryBytes.subarray(0, updates)) wireBytes += entryBytes
  const firstComma = updates === 0 ? 0 : 1
  const body = Buffer.allocUnsafe(source.head.length + wireBytes - firstComma + source.tail.length)
  body.set(source.head)
  let at = source.head.length
  let toSkip = firstComma
  let toCopy = wireBytes
  for (const piece of source.pieces) {
    const end = Math.min(piece.length, toCopy)
    if (end === 0) continue
    body.set(piece.subarray(toSkip, end), at)
    at += end - toSkip
    toCopy -= end
    toSkip = 0
  }
  // Without this check, uninitialized memory could reach a client.
  assert.equal(toCopy, 0, 'the pieces hold fewer bytes than the updates in them have')
  body.set(source.tail, at)
  return { body, updates }
}
