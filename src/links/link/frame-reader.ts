/** Splits the bytes that arrive on a link into frames. */
import { linkPayloadBytesMax } from '../../process/limits.ts'
import { BadFrameError, type Frame, frameHeadBytes } from './frame.ts'

const nothing = Buffer.alloc(0)

/** Called for each frame. The payload is only valid during the call. */
export type OnFrame = (frame: Frame, payload: Buffer) => void

export class FrameReader {
  readonly #onFrame: OnFrame
  /** Holds the frame whose end has not arrived. It is used again for later frames. */
  #memory = nothing
  /** How much of that frame has arrived. */
  #filled = 0

  constructor(onFrame: OnFrame) {
    this.#onFrame = onFrame
  }

  /** Throws a BadFrameError if the bytes are no frames. They are not used after the call. */
  read(bytes: Buffer): void {
    let at = this.#filled === 0 ? 0 : this.#complete(bytes)
    while (bytes.length - at >= frameHeadBytes) {
      const end = at + frameBytes(bytes, at)
      if (end > bytes.length) break
      this.#take(bytes, at, end)
      at = end
    }
    if (at < bytes.length) this.#keep(bytes.subarray(at))
  }

  /** Adds to the frame that has begun. Returns how many of the bytes belong to it. */
  #complete(bytes: Buffer): number {
    const missingOfHead = Math.max(0, frameHeadBytes - this.#filled)
    if (missingOfHead > 0) this.#keep(bytes.subarray(0, missingOfHead))
    if (this.#filled < frameHeadBytes) return bytes.length
    const frameEnd = frameBytes(this.#memory, 0)
    const used = Math.min(bytes.length, missingOfHead + frameEnd - this.#filled)
    this.#keep(bytes.subarray(missingOfHead, used))
    if (this.#filled === frameEnd) {
      this.#filled = 0
      this.#take(this.#memory, 0, frameEnd)
    }
    return used
  }

  #keep(bytes: Buffer): void {
    const needed = this.#filled + bytes.length
    if (needed > this.#memory.length) {
      const memory = Buffer.allocUnsafeSlow(Math.max(needed, 2 * this.#memory.length))
      this.#memory.copy(memory, 0, 0, this.#filled)
      this.#memory = memory
    }
    bytes.copy(this.#memory, this.#filled)
    this.#filled = needed
  }

  #take(bytes: Buffer, start: number, end: number): void {
    const frame = { exchange: bytes.readUInt32LE(start + 4), type: bytes[start + 8] ?? 0 }
    this.#onFrame(frame, bytes.subarray(start + frameHeadBytes, end))
  }
}

/** Returns the size of the frame that begins at `at`. */
function frameBytes(bytes: Buffer, at: number): number {
  const payloadBytes = bytes.readUInt32LE(at)
  if (payloadBytes > linkPayloadBytesMax) throw new BadFrameError('a frame of a link')
  return frameHeadBytes + payloadBytes
}
