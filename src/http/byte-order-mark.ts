/**
 * The byte order mark that some programs write before UTF-8. It is no part of JSON or of a stream of lines, so it is skipped.
 */
const mark = Buffer.from('\ufeff')
const nothing = Buffer.alloc(0)

/** Returns a body without the mark at its beginning. */
export function withoutByteOrderMark(body: Buffer): Buffer {
  return body[0] === mark[0] && body[1] === mark[1] && body[2] === mark[2]
    ? body.subarray(mark.length)
    : body
}

/** Skips the mark at the beginning of a stream, whose chunks may end within it. */
export class ByteOrderMarkSkipper {
  /** How many bytes of the mark have arrived; undefined when the beginning is over. */
  #matched: number | undefined = 0

  skip(chunk: Buffer): Buffer {
    if (this.#matched === undefined) return chunk
    const before = this.#matched
    let matched = before
    while (matched < mark.length && chunk[matched - before] === mark[matched]) matched++
    const isOpen = matched < mark.length && matched - before === chunk.length
    this.#matched = isOpen ? matched : undefined
    if (isOpen) return nothing
    if (matched === mark.length) return chunk.subarray(matched - before)
    return before === 0 ? chunk : Buffer.concat([mark.subarray(0, before), chunk])
  }

  /** Returns what has arrived of a mark that the stream ended within. */
  rest(): Buffer {
    const matched = this.#matched ?? 0
    this.#matched = undefined
    return mark.subarray(0, matched)
  }
}
