import type { PageSource } from '../../../src/queue/window/page.ts'

interface Cutting {
  readonly limit?: number
  /** Where the wire form is cut into pieces, modulo its length. */
  readonly cuts?: readonly number[]
}

/** Updates with the ids 7, 8, 9 ..., as a window would hold them, in shared memory. */
export function sourceOf(
  texts: readonly string[],
  { limit = 100, cuts = [] }: Cutting = {},
): PageSource {
  const entries = texts.map((text, nth) => Buffer.from(`,{"update_id":${nth + 7},${text}}`))
  const joined = Buffer.concat(entries)
  const wire = new Uint8Array(new SharedArrayBuffer(joined.length))
  wire.set(joined)
  const at = [0, ...cuts.map((cut) => cut % (wire.length + 1)), wire.length].toSorted(
    (a, b) => a - b,
  )
  return {
    head: Buffer.from('{"ok":true,"result":['),
    tail: Buffer.from(']}'),
    limit,
    pieces: at.slice(1).map((end, nth) => wire.subarray(at[nth], end)),
    entryBytes: Int32Array.from(entries, (entry) => entry.length),
    textBytes: Int32Array.from(texts, (text) => Buffer.byteLength(text)),
  }
}
