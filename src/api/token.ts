/**
 * Tokens: `<bot_id>:<secret>`, where the secret has 29 random characters and a checksum of 6.
 *
 *     123456789:Qy3vB0dHsmtP1xUe7nFfjT9kRwLgA Dk_9a1   (without the space)
 *     bot_id    29 characters, 174 bits       CRC-32 of all before it, base64url, leading bits zero
 *
 * The checksum allows a mistyped token to be refused without a look-up. Anybody can compute it, so it protects nothing;
 * only the SHA-256 of the secret, stored with the bot, does. Bots have tokens in this format in their configuration: do
 * not change it.
 *
 * With `--foreign-tokens`, a bot may have a token that another server has made: a secret of 35 to 60 characters without a
 * checksum. A mistyped token then costs a look-up, as any guess does.
 *
 * A token never appears in an error, a log line or a metric: write `bot<id>` instead.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { PostboteError } from '../kit/errors.ts'
import { botIdMax, botIdMin } from '../kit/limits.ts'
import type { StoredSecret } from '../kit/rights.ts'

/** The two parts of a token, before and after the colon. */
export interface Token {
  readonly botId: number
  readonly secret: string
}

/** The value of `--filter`: only bots with `botId % modulus === remainder` are served. */
export interface TokenFilter {
  readonly remainder: number
  readonly modulus: number
}

/**
 * Whether a filter includes a bot.
 *
 * @param botId - The bot id, or its digits unchecked: an id out of range may be too long for an exact number.
 */
export function isServed(botId: number | string, { remainder, modulus }: TokenFilter): boolean {
  if (typeof botId === 'number') return botId % modulus === remainder
  return BigInt(botId) % BigInt(modulus) === BigInt(remainder)
}

/** Returns a token as its bot has it. */
export function tokenText({ botId, secret }: Token): string {
  return `${botId}:${secret}`
}

const secretLength = 35
const randomLength = 29
const secretShape = /^[A-Za-z0-9_-]{35}$/
/** Bots of the public service have 35 characters. Chosen: some more, so that a longer secret needs no new version. */
const foreignSecretLengthMax = 60
const foreignSecretShape = new RegExp(`^[A-Za-z0-9_-]{${secretLength},${foreignSecretLengthMax}}$`)
/** The pattern of a whole token that another server has made. */
export const foreignTokenPattern = `^[1-9][0-9]{2,15}:[A-Za-z0-9_-]{${secretLength},${foreignSecretLengthMax}}$`
/**
 * With `--foreign-tokens`, a wrong token is refused this long after its call arrived, and so is a wrong link of the owner's page.
 * Anybody can then guess at any bot, so the time must not say whether the bot exists. Chosen: far more than the one read that the
 * refusal waits for, and less than anybody notices.
 */
export const foreignRefusalMs = 20
const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

/**
 * Creates a new token.
 *
 * @param randomBytes - A cryptographically secure generator, such as `randomBytes` of node:crypto.
 */
export function makeToken(botId: number, randomBytes: (count: number) => Buffer): string {
  const random = randomBytes(22).toString('base64url').slice(0, randomLength)
  const checked = `${botId}:${random}`
  return checked + checksum(checked)
}

/** As `readToken`, and checks the secret as `assertIntact`. The result may still not be the token of any bot. */
export function parseToken(text: string, filter?: TokenFilter, isForeignAllowed = false): Token {
  const token = readToken(text, filter)
  assertIntact(token, isForeignAllowed)
  return token
}

/** A token may have this many characters. [ref] */
const tokenLengthMax = 80

/**
 * Splits a token and checks the bot id and the filter, in an order that clients can observe (401 or 421).
 *
 * The secret is not checked, because a secret that a bot accepts needs no further check.
 *
 * @param filter - The bots that this server serves; all if it is absent.
 * @throws INVALID_TOKEN if the text has no colon, is too long, or has an impossible bot id; UNALLOWED_TOKEN if the bot
 *   id is not a number or the filter excludes it.
 */
export function readToken(text: string, filter?: TokenFilter): Token {
  const colon = text.indexOf(':')
  if (colon === -1 || text.length > tokenLengthMax || text.startsWith('0') || text.includes('/')) {
    // A slash at the end of the address that a framework was given, which adds the token to `/bot`.
    const detail = text === '' ? ': expected it right after "/bot", got a slash' : ''
    throw new PostboteError('INVALID_TOKEN', { detail })
  }
  const idText = text.slice(0, colon)
  if (!isInteger(idText) || (filter !== undefined && !isServed(idText, filter))) {
    throw new PostboteError('UNALLOWED_TOKEN')
  }
  const botId = Number(idText)
  if (!(botId >= botIdMin && botId <= botIdMax)) throw new PostboteError('INVALID_TOKEN')
  return { botId, secret: text.slice(colon + 1) }
}

/**
 * Throws INVALID_TOKEN if the checksum of a secret is wrong, which avoids a look-up for a mistyped token.
 *
 * @param isForeignAllowed - Whether a secret of another server, which has no checksum, passes as well.
 */
export function assertIntact(token: Token, isForeignAllowed = false): void {
  const isRight = isForeignAllowed ? foreignSecretShape.test(token.secret) : isIntact(token)
  if (!isRight) throw new PostboteError('INVALID_TOKEN')
}

function isIntact({ botId, secret }: Token): boolean {
  return (
    secretShape.test(secret) &&
    checksum(`${botId}:${secret.slice(0, randomLength)}`) === secret.slice(randomLength)
  )
}

/** Returns what is stored of a token: no more than its hash, and whether only `--foreign-tokens` lets it in. */
export function storedSecretOf(token: Token): StoredSecret {
  const sha256 = secretHash(token.secret).toString('base64url')
  return isIntact(token) ? { sha256 } : { sha256, isForeign: true }
}

/** Returns the hash of a secret that is stored: its SHA-256, 32 bytes. */
export function secretHash(secret: string): Buffer {
  return createHash('sha256').update(secret).digest()
}

/**
 * Checks in constant time whether a secret belongs to a bot.
 *
 * The verifier remembers the bytes of the secret that was accepted last: comparing them takes 0.1 us, SHA-256 0.7 to
 * 1.2 us, and a request may cost 6 to 8 us in all. The bytes are in a typed array, whose content does not appear in
 * heap snapshots or diagnostic reports. Refused secrets are not remembered.
 *
 * There is one verifier for every bot in memory. The array is therefore never passed to native code: V8 would move its
 * bytes out of the heap into separate memory with 270 bytes of overhead. For the same reason, hashes are decoded only
 * when they are needed.
 */
export class TokenVerifier {
  readonly #secrets: readonly StoredSecret[]
  #lastBytes: Uint8Array | undefined
  #lastEndsAtMs = 0

  /** @param isForeignAllowed - Whether secrets that another server has made count. */
  constructor(secrets: readonly StoredSecret[], isForeignAllowed = false) {
    const areAllAllowed = isForeignAllowed || secrets.every(isOwn)
    this.#secrets = areAllAllowed ? secrets : secrets.filter(isOwn)
  }

  /** Whether a secret is valid for a while only, so that the time matters. */
  get hasEnd(): boolean {
    return this.#secrets.some(({ endsAtMs }) => endsAtMs !== undefined)
  }

  /** Whether a secret is valid at a wall time. */
  accepts(secret: string, nowMs: number): boolean {
    const { length } = secret
    if (length < secretLength || length > foreignSecretLengthMax) return false
    const last = this.#lastBytes
    if (last?.length === length && nowMs < this.#lastEndsAtMs) {
      const { scratch, lastCopy } = scratchOf(length)
      lastCopy.set(last)
      // As many bytes as characters means that all are ASCII, so nothing is left of an earlier secret.
      const isWritten = scratch.write(secret) === length
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
    const { scratch } = scratchOf(secret.length)
    scratch.write(secret)
    this.#lastBytes = new Uint8Array(secret.length)
    this.#lastBytes.set(scratch)
    this.#lastEndsAtMs = found.endsAtMs ?? Infinity
    return true
  }
}

function isOwn({ isForeign }: StoredSecret): boolean {
  return isForeign !== true
}

interface Scratch {
  readonly scratch: Buffer
  readonly lastCopy: Buffer
}

/** By the length of the secret, because only arrays of one length can be compared in constant time. */
const scratches: Scratch[] = []
for (let length = secretLength; length <= foreignSecretLengthMax; length++) {
  scratches.push({ scratch: Buffer.alloc(length), lastCopy: Buffer.alloc(length) })
}

function scratchOf(length: number): Scratch {
  const found = scratches[length - secretLength]
  if (found === undefined) throw new Error(`expected the length of a secret, got ${length}`)
  return found
}

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
