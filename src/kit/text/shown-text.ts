/**
 * The door for text of strangers: what an endpoint, an origin, a proxy, a certificate or a client has said passes here before it
 * is shown to people or stored for them. What comes out
 *
 *   - is at most as long as was asked for, on one line, and all of it can be seen (visible.ts);
 *   - has `***` in place of secrets and of tokens of bots (secret-finder.ts);
 *   - has cost no more than its length: a stranger decides what it says and how often, so text is cut before it is searched,
 *     and each step is linear.
 *
 * A secret may begin before the end of what is shown and end after it, so more is read than is shown. If the text went on,
 * what was read last may be a part of a secret, and is never shown; neither is the beginning of one whose spelling is longer than
 * all that was read.
 */
import { kib } from '../limits.ts'
import { SecretFinder } from './secret-finder.ts'
import { visible } from './visible.ts'

/** So many bytes are read beyond those that are shown: no secret is longer, as the url of a webhook has at most 2,048 characters. */
export const secretBytesMax = 4 * kib

export interface ShownTextOptions {
  /** The length of what is shown; `***` may take more than the secret it stands for. */
  readonly bytesMax: number
  /** Finds what must not be shown; by default only tokens of bots. */
  readonly secrets?: SecretFinder | undefined
}

const noSecrets = new SecretFinder([])

/** Returns the beginning of what a stranger has said, fit to be shown. */
export function shownText(
  said: string,
  { bytesMax, secrets = noSecrets }: ShownTextOptions,
): string {
  const bytesRead = bytesMax + secretBytesMax
  // No character is shorter than a byte.
  const beginning = said.slice(0, bytesRead)
  const isCut = Buffer.byteLength(beginning) >= bytesRead
  const bytes = Buffer.from(visible(beginning.replaceAll(/[\t\n\r]/g, ' ')))
  const mask = secrets.maskOf(bytes.toString('latin1'), isCut)
  // No byte of what can be seen is 0.
  for (let at = 0; at < mask.length; at++) if (mask[at] === 1) bytes[at] = 0
  const end = isCut ? Math.min(bytesMax, bytes.length - secretBytesMax) : bytesMax
  return firstBytes(bytes, end).split(/\0+/).join('***')
}

function firstBytes(bytes: Buffer, bytesMax: number): string {
  let end = Math.max(Math.min(bytesMax, bytes.length), 0)
  // Not within a character: its further bytes begin with the bits 10.
  while (end < bytes.length && end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--
  return bytes.toString('utf8', 0, end)
}
