/**
 * Finds secrets and tokens of bots in what a stranger says, in any usual spelling: as they are, with characters escaped as in
 * URLs (`%3a`), JSON (`\u003a`, `\/`, also JSON in JSON) or HTML (`&#58;`), in base64 and base64url, and whole in base64.
 *
 *     said    b o t 7 % 3 A A A s e ...
 *     plain   b o t 7 :     A A s e ...      what it means, with the place of each character in what was said
 *     mask    0 0 0 1 1 1 1 1 1 1 1 ...      what must not be shown
 *
 * Both sides are read in the same way, so a secret needs no list of its spellings. Texts are byte strings: each character is a
 * byte of UTF-8, and lengths are bytes. The cost is linear in the length of a text: no expression has an unbounded repetition
 * with something after it, and the number of secrets has a bound.
 */
import { visible } from './visible.ts'

/**
 * With more secrets than this, nothing is shown of a text. Chosen: each is a search, and only a webhook whose url was made to cost
 * much has that many parts of 8 characters.
 */
export const secretsSearchedMax = 64
/** What is shorter is not searched for: it would be blanked out in half of all words. */
export const secretLengthMin = 4
/** Shorter runs are not decoded: they are words, and have no token. */
const base64Run = /[\w+/-]{16,}/g
/** The end of a token of a bot, whichever, from the last digit of the id on. The server itself may not know it. */
const tokenFromColon = /\d:[\w-]{30,}/g
/** Digits of a bot's id: it is less than 2^52. */
const idDigitsMax = 16
/** A character may be escaped again by each layer that it passes. The last bytes are the mark of visible.ts, which means nothing. */
const escape =
  /%(?:25){0,4}[\da-f]{2}|\\{1,8}(?:x[\da-f]{2}|u[\da-f]{4}|["/])|\\{2,8}|&(?:#x[\da-f]{1,6}|#\d{1,7}|amp|apos|colon|gt|lt|quot|sol);|\xef\xbf\xbd/gi
const entities: Readonly<Record<string, string>> = {
  amp: '&',
  apos: "'",
  colon: ':',
  gt: '>',
  lt: '<',
  quot: '"',
  sol: '/',
}

export class SecretFinder {
  /** In their plain form; undefined if there are too many. */
  readonly #secrets: readonly string[] | undefined

  constructor(secrets: Iterable<string>) {
    const forms = new Set(Array.from(secrets, (secret) => formsOf(secret)).flat())
    this.#secrets = forms.size > secretsSearchedMax ? undefined : [...forms]
  }

  /** Returns for each byte of a text whether it must not be shown: 1 if so, otherwise 0. */
  maskOf(bytes: string): Uint8Array {
    const mask = new Uint8Array(bytes.length)
    const secrets = this.#secrets
    if (secrets === undefined) return mask.fill(1)
    const { plain, places } = plainOf(bytes)
    const hide = (from: number, length: number): void => {
      mask.fill(1, placeOf(places, from).start, placeOf(places, from + length - 1).end)
    }
    for (const secret of secrets) {
      for (let at = plain.indexOf(secret); at >= 0; at = plain.indexOf(secret, at + secret.length))
        hide(at, secret.length)
    }
    for (const { 0: rest, index } of plain.matchAll(tokenFromColon)) {
      const from = firstDigit(plain, index)
      hide(from, index + rest.length - from)
    }
    for (const { 0: run, index } of plain.matchAll(base64Run)) {
      if (hasSecretInBase64(run, secrets)) hide(index, run.length)
    }
    return mask
  }
}

function firstDigit(plain: string, last: number): number {
  let first = last
  while (first > 0 && last - first < idDigitsMax - 1 && /\d/.test(plain.charAt(first - 1))) first--
  return first
}

/** The plain form of a secret, and if it may be in base64 also that in base64url; both without padding, too. */
function formsOf(secret: string): readonly string[] {
  const { plain } = plainOf(bytesOf(visible(secret)))
  const bare = plain.replace(/={1,2}$/, '')
  const url = bare.replaceAll('+', '-').replaceAll('/', '_')
  return [plain, bare, url].filter(({ length }) => length >= secretLengthMin)
}

/** Returns the bytes of a text, each as a character. */
function bytesOf(text: string): string {
  return Buffer.from(text).toString('latin1')
}

interface Plain {
  readonly plain: string
  /** Undefined if each character of `plain` is that of the text. */
  readonly places: Places | undefined
}

/** Where each character of a plain text begins in what was said, and where it ends. */
interface Places {
  readonly starts: readonly number[]
  readonly ends: readonly number[]
}

function placeOf(
  places: Places | undefined,
  at: number,
): { readonly start: number | undefined; readonly end: number | undefined } {
  if (places === undefined) return { start: at, end: at + 1 }
  return { start: places.starts[at], end: places.ends[at] }
}

function plainOf(bytes: string): Plain {
  const starts: number[] = []
  const ends: number[] = []
  let at = 0
  const copyTo = (end: number): void => {
    for (; at < end; at++) {
      starts.push(at)
      ends.push(at + 1)
    }
  }
  const plain = bytes.replace(escape, (escaped, index: number) => {
    copyTo(index)
    const meant = meaningOf(escaped)
    at = index + escaped.length
    for (let nth = 0; nth < meant.length; nth++) {
      starts.push(index)
      ends.push(at)
    }
    return meant
  })
  if (at === 0) return { plain, places: undefined }
  copyTo(bytes.length)
  return { plain, places: { starts, ends } }
}

/** Returns the bytes that an escape stands for. */
function meaningOf(escaped: string): string {
  switch (escaped.charAt(0)) {
    case '%':
      return byteOf(escaped.slice(-2))
    case '&':
      return characterOfEntity(escaped.slice(1, -1).toLowerCase())
    case '\\':
      return characterOfBackslash(escaped)
    default:
      return ''
  }
}

function byteOf(hex: string): string {
  return String.fromCharCode(Number.parseInt(hex, 16))
}

function characterOfEntity(name: string): string {
  if (name.startsWith('#x')) return characterOf(Number.parseInt(name.slice(2), 16))
  return name.startsWith('#') ? characterOf(Number(name.slice(1))) : (entities[name] ?? '')
}

/** Of `\u003a`, `\x3a`, `\/`, or backslashes alone, each after any number of backslashes. */
function characterOfBackslash(escaped: string): string {
  const last = escaped.at(-1)
  if (last === '"' || last === '/' || last === '\\') return last
  return /u.{4}$/i.test(escaped)
    ? characterOf(Number.parseInt(escaped.slice(-4), 16))
    : byteOf(escaped.slice(-2))
}

const codePointMax = 0x10_ff_ff

function characterOf(code: number): string {
  if (code < 0x80) return String.fromCharCode(code)
  return code > codePointMax ? '?' : bytesOf(String.fromCodePoint(code))
}

/** A run may begin with characters that are no part of what was encoded, such as those of a path. */
function hasSecretInBase64(run: string, secrets: readonly string[]): boolean {
  return [0, 1, 2, 3].some((skipped) => {
    const decoded = Buffer.from(run.slice(skipped), 'base64').toString('latin1')
    return decoded.search(tokenFromColon) >= 0 || secrets.some((secret) => decoded.includes(secret))
  })
}
