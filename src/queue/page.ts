import { answerBytesMax, updateEnvelopeBytes } from '../limits.ts'

/**
 * How many of these updates, oldest first, go into one answer of getUpdates: at most `limit`, and the sum of
 * (50 + text length) stays below 4 MiB [ref]. The first alone always fits.
 */
export function pageLength(
  updates: readonly { readonly textBytes: number }[],
  limit: number,
): number {
  let answerBytes = 0
  let length = 0
  for (const { textBytes } of updates) {
    answerBytes += updateEnvelopeBytes + textBytes
    if (length === limit || (answerBytes >= answerBytesMax && length > 0)) break
    length += 1
  }
  return length
}
