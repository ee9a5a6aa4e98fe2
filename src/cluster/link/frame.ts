/**
 * The frames of a link between two workers: many requests share one connection, and what they send in one turn of the
 * event loop goes out in one write.
 *
 *   u32 payload length | u32 exchange | u8 type | payload
 *
 * Numbers are little-endian. An exchange is one request with its response; the side that opened the link numbers them.
 * The first `data` frames of a response hold its head as text, the rest its body without any transfer encoding: the flag
 * `fin` ends a request or a response, and `cancel` breaks one off.
 */
export const frameType = {
  /** The head of a request (request-fields.ts). */
  request: 1,
  data: 2,
  /** The sender has lost interest in the exchange, or cannot finish it. */
  cancel: 3,
  /** The receiver of this frame stops sending data of this exchange until `resume`. */
  pause: 4,
  resume: 5,
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
