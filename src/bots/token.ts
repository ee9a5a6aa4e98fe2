/**
 * Tokens: `<bot_id>:<secret>`, the secret being 29 random characters and a checksum of 6.
 *
 *     123456789:Qy3vB0dHsmtP1xUe7nFfjT9kRwLgA Dk_9a1   (without the space)
 *     bot_id    29 characters, 174 bits       CRC-32 of all before it, base64url, leading bits zero
 *
 * The checksum lets a mistyped token be refused with no look-up at all. It is public knowledge and protects nothing:
 * only the SHA-256 of the secret, kept with the bot, does. The format is what bots have in their configuration: do
 * not change it.
 *
 * Here and everywhere, a token is never part of an error, a log line or a metric: say `bot<id>`.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { PostboteError } from '../errors.ts'
import { botIdMax, botIdMin, tokenLengthMax } from '../limits.ts'

export interface Token {
  readonly botId: number
  readonly secret: string
}

/** Serves only bots with `botId % modulus === remainder`. */
export interface TokenFilter {
  readonly remainder: number
  readonly modulus: number
}

/** `botId` may be digits that nobody has checked: an id out of range may be too long for exact division. */
export function isServed(botId: number | string, filter: TokenFilter): boolean {
  return BigInt(botId) % BigInt(filter.modulus) === BigInt(filter.remainder)
}

const secretLength = 35
const randomLength = 29
const secretShape = /^[A-Za-z0-9_-]{35}$/
const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

/** A new token; `randomBytes` is a CSPRNG (node:crypto's `randomBytes`). */
export function makeToken(botId: number, randomBytes: (count: number) => Buffer): string {
  const random = randomBytes(22).toString('base64url').slice(0, randomLength)
  const checked = `${botId}:${random}`
  return checked + checksum(checked)
}

/** As `readToken`, and checks the secret as well: what this gives may still be no bot's token. */
export function parseToken(text: string, filter?: TokenFilter): Token {
  const token = readToken(text, filter)
  assertIntact(token)
  return token
}

/**
 * Finds the two parts and checks the first one: shape and filter, in an order that clients can observe (401 or 421).
 * Of the secret nothing is known: one that a bot accepts need not be looked at any closer.
 */
export function readToken(text: string, filter?: TokenFilter): Token {
  const colon = text.indexOf(':')
  if (colon === -1 || text.length > tokenLengthMax || text.startsWith('0') || text.includes('/')) {
    throw new PostboteError('INVALID_TOKEN')
  }
  const idText = text.slice(0, colon)
  if (!isInteger(idText) || (filter !== undefined && !isServed(idText, filter))) {
    throw new PostboteError('UNALLOWED_TOKEN')
  }
  const botId = Number(idText)
  if (!(botId >= botIdMin && botId <= botIdMax)) throw new PostboteError('INVALID_TOKEN')
  return { botId, secret: text.slice(colon + 1) }
}

/** Throws INVALID_TOKEN where the secret was mistyped, so that nobody need look for its bot. */
export function assertIntact({ botId, secret }: Token): void {
  const isIntact =
    secretShape.test(secret) &&
    checksum(`${botId}:${secret.slice(0, randomLength)}`) === secret.slice(randomLength)
  if (!isIntact) throw new PostboteError('INVALID_TOKEN')
}

/** What is stored of a secret. */
export function secretHash(secret: string): Buffer {
  return createHash('sha256').update(secret).digest()
}

export interface AcceptedSecret {
  readonly hash: Buffer
  /** Wall time from which the secret is refused: the end of a token change's overlap. Absent: never. */
  readonly endsAtMs?: number
}

/**
 * Says whether a secret is one of a bot's, in constant time.
 *
 * It remembers the bytes of the secret accepted last: comparing them takes 0.1 us where SHA-256 takes 0.7 to 1.2, out
 * of 6 to 8 us that a request may cost. They lie in a Buffer, outside the JavaScript heap, so that heap snapshots
 * and diagnostic reports do not hold them; nothing is remembered of a refused secret.
 */
export class TokenVerifier {
  readonly #accepted: readonly AcceptedSecret[]
  #last: { readonly bytes: Buffer; readonly endsAtMs: number } | undefined

  constructor(accepted: readonly AcceptedSecret[]) {
    this.#accepted = accepted
  }

  accepts(secret: string, nowMs: number): boolean {
    if (secret.length !== secretLength) return false
    const last = this.#last
    if (last !== undefined && nowMs < last.endsAtMs) {
      // As many bytes as characters: all ASCII, and nothing left of an earlier secret.
      const isWritten = scratch.write(secret) === secretLength
      if (isWritten && timingSafeEqual(scratch, last.bytes)) return true
    }
    return this.#acceptsByHash(secret, nowMs)
  }

  #acceptsByHash(secret: string, nowMs: number): boolean {
    const hash = secretHash(secret)
    let found: AcceptedSecret | undefined
    for (const accepted of this.#accepted) {
      const isCurrent = nowMs < (accepted.endsAtMs ?? Infinity)
      if (timingSafeEqual(hash, accepted.hash) && isCurrent) found = accepted
    }
    if (found === undefined) return false
    // A buffer of its own: one of the shared pool would stay behind in other buffers' memory.
    const bytes = Buffer.alloc(secretLength)
    bytes.write(secret)
    this.#last = { bytes, endsAtMs: found.endsAtMs ?? Infinity }
    return true
  }
}

const scratch = Buffer.alloc(secretLength)

function checksum(text: string): string {
  let rest = crc32(text)
  let encoded = ''
  for (let place = 0; place < 6; place++) {
    encoded = digits.charAt(rest & 63) + encoded
    rest >>>= 6
  }
  return encoded
}

function isInteger(text: string): boolean {
  return /^-?\d+$/.test(text)
}
