/**
 * The frames of a link between two workers, of one machine or of two: many requests share one connection, and what they
 * send in one turn of the event loop goes out in one write.
 *
 *   u32 payload length | u32 exchange | u8 type | payload
 *
 * Numbers are little-endian. An exchange is one request with its response; the side that opened the link numbers them.
 * The first `data` frames of a response hold its head as text, the rest its body without any transfer encoding: the flag
 * `fin` ends a request or a response, and `cancel` breaks one off.
 * `leave` and `ready` are about the link itself, and their exchange is 0: either end sends `leave`, and the owner's `ready`.
 * Do not renumber the types: nodes of two versions share links, and earlier owners ignore a caller's `leave`.
 */
export const frameType = {
  /** The head of a request (request-fields.ts). */
  request: 1,
  /** Without bytes after the end of a request: its client has ended its side, and a poll waits no more. Earlier owners ignore it. */
  data: 2,
  /** The sender has lost interest in the exchange, or cannot finish it. */
  cancel: 3,
  /** The receiver of this frame stops sending data of this exchange until `resume`. */
  pause: 4,
  resume: 5,
  /**
   * The owner is being replaced and wants no new exchanges on this link. Those that are open go on, and those that the
   * caller opened before it read this frame are served, too. The caller closes the link after the last one. From the
   * caller it says that the caller ends: polls of this link, now and later, get `[]` instead of waiting.
   */
  leave: 6,
  /**
   * The first frame of a link between nodes: the owner has accepted the caller's key. Before it, the
   * caller sends nothing, because in TLS 1.3 its own handshake ends before the owner has checked its certificate.
   */
  ready: 7,
} as const

/** A flag of `request` and `data`: nothing follows in this direction. */
export const fin = 0x80

export interface Frame {
  readonly exchange: number
  /** One of `frameType`, with or without `fin`. */
  readonly type: number
}

/** The other side does not follow the format of a link: the link ends. */
export class BadFrameError extends Error {
  constructor(expected: string) {
    super(`expected ${expected}`)
    this.name = 'BadFrameError'
  }
}

/** The size of a frame without its payload. */
export const frameHeadBytes = 9

/** Returns a frame about the link itself, `leave` or `ready`. */
export function linkFrame(type: number): Buffer {
  const bytes = Buffer.alloc(frameHeadBytes)
  bytes[frameHeadBytes - 1] = type
  return bytes
}
