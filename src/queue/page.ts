/**
 * One answer to getUpdates as bytes: which updates fit (SPEC 5), and the body made of them.
 *
 * Pure, and used on both sides: by the owner, which answers with slices of its window, and by the Piscina thread
 * that assembles and compresses large answers.
 *
 * A window holds its updates in wire form, one behind the other, each with its comma:
 *
 *   pieces   ,{"update_id":7,"message":{...}},{"update_id":8,"poll":{...}} | ,{"update_id":9,...}
 *   body     head without the first comma, as many whole updates as fit, tail
 */

import assert from 'node:assert/strict'
import { answerBytesMax, updateEnvelopeBytes } from '../limits.ts'

export interface PageSource {
  /** What stands before the first update: `{"ok":true,"result":[`. */
  readonly head: Uint8Array
  /** What stands behind the last: `]}`. */
  readonly tail: Uint8Array
  /** At most this many updates. */
  readonly limit: number
  readonly pieces: readonly Uint8Array[]
  /** Of every update in the pieces, in order: its bytes there, the comma included. */
  readonly entryBytes: Int32Array
  /** Of every update in the pieces, in order: the bytes of its text alone, `"message":{...}`. */
  readonly textBytes: Int32Array
}

export interface Page {
  readonly body: Buffer
  readonly updates: number
}

/**
 * How many updates of these text lengths, from the first on, make one answer: the sum of (50 + text length) stays
 * below 4 MiB. A first one alone always fits.
 */
export function countThatFit(textBytes: ArrayLike<number>, limit: number): number {
  const most = Math.min(textBytes.length, limit)
  let count = 0
  let sumBytes = 0
  while (count < most) {
    sumBytes = sumWith(sumBytes, textBytes[count] ?? 0)
    if (sumBytes > answerBytesMax) break
    count++
  }
  return count
}

/** The sum after one more update; above `answerBytesMax` where that one does not fit any more. */
export function sumWith(sumBytes: number, textBytes: number): number {
  const nextBytes = sumBytes + updateEnvelopeBytes + textBytes
  if (nextBytes < answerBytesMax) return nextBytes
  return sumBytes === 0 ? answerBytesMax : Number.POSITIVE_INFINITY
}

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
  // Else memory that was never written would go out to a client.
  assert.equal(toCopy, 0, 'the pieces hold fewer bytes than the updates in them have')
  body.set(source.tail, at)
  return { body, updates }
}
