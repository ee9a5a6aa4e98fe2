/** Splits the bytes that arrive on a link into frames. */
import { linkPayloadBytesMax } from '../limits.ts'
import { type Frame, frameHeadBytes } from './frame.ts'

const nothing = Buffer.alloc(0)

/** Called for each frame. The payload is only valid during the call. */
export type OnFrame = (frame: Frame, payload: Buffer) => void

export class FrameReader {
  readonly #onFrame: OnFrame
  /** The beginning of a frame whose end has not arrived. */
  #partial = nothing

  constructor(onFrame: OnFrame) {
    this.#onFrame = onFrame
  }

  /** Throws an Error if the bytes are no frames. */
  read(bytes: Buffer): void {
    const all = this.#partial.length === 0 ? bytes : Buffer.concat([this.#partial, bytes])
    let at = 0
    while (all.length - at >= frameHeadBytes) {
      const payloadBytes = all.readUInt32LE(at)
      if (payloadBytes > linkPayloadBytesMax) throw new Error('expected a frame of a link')
      const start = at + frameHeadBytes
      const end = start + payloadBytes
      if (end > all.length) break
      const frame = { exchange: all.readUInt32LE(at + 4), type: all[at + 8] ?? 0 }
      this.#onFrame(frame, all.subarray(start, end))
      at = end
    }
    this.#partial = at === all.length ? nothing : Buffer.from(all.subarray(at))
  }
}
