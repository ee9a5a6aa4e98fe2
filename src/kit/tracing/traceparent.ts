/**
 * A place in a trace, as the header `traceparent` of W3C Trace Context tells it, version 00:
 *
 *     00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01
 *        trace id                         span id          flags
 *
 * A text of this kind is checked where it enters the server, and is in this form from then on. Records have its 25 bytes
 * (shard/records/record.ts). Of the flags, only those that the standard names are kept: 1 is for a trace that is sampled, 2 for one
 * whose id is random. Other bits must not be passed on.
 */
import { hash, randomFillSync } from 'node:crypto'

/** The trace id, the span id and the flags. */
export const traceBytes = 25
/** The characters of the text. */
export const traceparentLength = 55
const flagsKept = 3
const sampledFlag = 1
const spanIdBytes = 8
/** As nearly all places are: such a text is kept as it is, because pieces of another would keep that one in memory. */
const usualShape = /^00-(?!0{32})[\da-f]{32}-(?!0{16})[\da-f]{16}-0[0-3]$/
const shape =
  /^(?!ff)([\da-f]{2})-(?!0{32})([\da-f]{32})-(?!0{16})([\da-f]{16})-([\da-f]{2})(-.*)?$/

/**
 * Reads a `traceparent` as the standard says. One of a later version counts as far as it is known.
 *
 * @returns the place as version 00; undefined if the value is not valid
 */
export function readTraceparent(value: unknown): string | undefined {
  if (typeof value !== 'string') return undefined
  if (usualShape.test(value)) return value
  const [, version, traceId = '', spanId = '', flags = '', more] = shape.exec(value) ?? []
  if (version === undefined || (version === '00' && more !== undefined)) return undefined
  return `00-${traceId}-${spanId}-${hexOfByte(Number.parseInt(flags, 16) & flagsKept)}`
}

function hexOfByte(byte: number): string {
  return byte.toString(16).padStart(2, '0')
}

/** Returns the 25 bytes in hexadecimal digits. */
export function traceHexOf(traceparent: string): string {
  return traceparent.slice(3, 35) + traceparent.slice(36, 52) + traceparent.slice(53)
}

/** @param hex - as `traceHexOf` returns it */
export function traceparentOfHex(hex: string): string {
  return `00-${hex.slice(0, 32)}-${hex.slice(32, 48)}-${hex.slice(48)}`
}

export function traceIdOf(traceparent: string): string {
  return traceparent.slice(3, 35)
}

export function spanIdOf(traceparent: string): string {
  return traceparent.slice(36, 52)
}

/** Whether the producer records this trace, so that its spans are worth sending. */
export function isSampled(traceparent: string): boolean {
  return (Number.parseInt(traceparent.slice(53), 16) & sampledFlag) !== 0
}

/** Returns a place in the same trace with a new span id. */
export function nextTraceparent(traceparent: string): string {
  return `${traceparent.slice(0, 36)}${newSpanId()}${traceparent.slice(52)}`
}

/** Random bytes for the next ids: a call for each took 3 us. */
const randomPool = Buffer.alloc(1_024)
let poolAt = randomPool.length

export function newSpanId(): string {
  if (poolAt === randomPool.length) {
    randomFillSync(randomPool)
    poolAt = 0
  }
  poolAt += spanIdBytes
  return randomPool.toString('hex', poolAt - spanIdBytes, poolAt)
}

/**
 * Returns the id of a span of which an update has only one. Every process that has the update, now or later, knows it from
 * the trace and the update, so it is stored nowhere.
 */
export function onlySpanId(
  name: 'push' | 'wait',
  { traceparent, queue, updateId }: TracedUpdate,
): string {
  const text = `${name} ${traceIdOf(traceparent)} ${queue} ${updateId}`
  return hash('sha256', text).slice(0, 2 * spanIdBytes)
}

/** An update of a trace. */
export interface TracedUpdate {
  readonly traceparent: string
  /** As the keys of records number it (shard/records/record-keys.ts). */
  readonly queue: number
  readonly updateId: number
}
