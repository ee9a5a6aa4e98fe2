/** Reduces a chunk that fails: removes ever smaller parts of it while it still fails. */

/** So many bytes of a chunk are tried at first, relative to its length. */
const firstShare = 2

/**
 * @param chunk - a chunk that fails
 * @param fails - says whether another one fails
 * @returns a chunk that fails and from which no single byte can be removed
 */
export function minimized(chunk: Buffer, fails: (chunk: Buffer) => boolean): Buffer {
  let least = chunk
  let size = Math.ceil(chunk.length / firstShare)
  for (;;) {
    let isSmaller = false
    for (let at = 0; at < least.length; ) {
      const tried = Buffer.concat([least.subarray(0, at), least.subarray(at + size)])
      if (fails(tried)) {
        least = tried
        isSmaller = true
      } else at += size
    }
    if (size > 1) size = Math.ceil(size / 2)
    else if (!isSmaller) return least
  }
}
