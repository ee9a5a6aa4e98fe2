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
import type { StoredSecret } from '../shard/bot-record.ts'

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

/**
 * Says whether a secret is one of a bot's, in constant time.
 *
 * It remembers the bytes of the secret accepted last: comparing them takes 0.1 us where SHA-256 takes 0.7 to 1.2, out
 * of 6 to 8 us that a request may cost. They lie in an array of bytes, of which heap snapshots and diagnostic reports
 * show nothing; nothing is remembered of a refused secret.
 *
 * There is one for every bot in memory. So the array is never given to anything native: V8 would move its bytes out of
 * the heap, into memory of their own with 270 bytes around them. And hashes are decoded when they are needed.
 */
export class TokenVerifier {
  readonly #secrets: readonly StoredSecret[]
  #lastBytes: Uint8Array | undefined
  #lastEndsAtMs = 0

  constructor(secrets: readonly StoredSecret[]) {
    this.#secrets = secrets
  }

  accepts(secret: string, nowMs: number): boolean {
    if (secret.length !== secretLength) return false
    const last = this.#lastBytes
    if (last !== undefined && nowMs < this.#lastEndsAtMs) {
      lastCopy.set(last)
      // As many bytes as characters: all ASCII, and nothing left of an earlier secret.
      const isWritten = scratch.write(secret) === secretLength
      if (isWritten && timingSafeEqual(scratch, lastCopy)) return true
    }
    return this.#acceptsByHash(secret, nowMs)
  }

  #acceptsByHash(secret: string, nowMs: number): boolean {
    const hash = secretHash(secret)
    let found: StoredSecret | undefined
    for (const stored of this.#secrets) {
      const isCurrent = nowMs < (stored.endsAtMs ?? Infinity)
      if (timingSafeEqual(hash, Buffer.from(stored.sha256, 'base64url')) && isCurrent) {
        found = stored
      }
    }
    if (found === undefined) return false
    scratch.write(secret)
    this.#lastBytes = new Uint8Array(secretLength)
    this.#lastBytes.set(scratch)
    this.#lastEndsAtMs = found.endsAtMs ?? Infinity
    return true
  }
}

const scratch = Buffer.alloc(secretLength)
const lastCopy = Buffer.alloc(secretLength)

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
