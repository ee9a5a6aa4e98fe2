/**
 * Finds secrets and tokens of bots in what a stranger says, in any usual spelling: as they are, with characters escaped as in
 * URLs (`%3a`), JSON (`\u003a`, `\/`, also JSON in JSON) or HTML (`&#58;`), in base64 and base64url, in lines or not, and whole in base64.
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
/**
 * A character may be escaped again by each layer that it passes. Two alternatives stand for no character: the first, the end of a
 * line within base64, which has at least 60 characters before it, and the last, the mark of visible.ts.
 */
const escape =
  /(?=[ \\])(?<=[\w+/-]{60})(?:(?:\\{1,8}r)?\\{1,8}n| {1,2})(?=[\w+/-])|%(?:25){0,4}(?:[\da-f]{2}|u[\da-f]{4})|\\{1,8}(?:x[\da-f]{2}|u[\da-f]{4}|u\{[\da-f]{1,8}\}|[0-3][0-7]{2}|["/])|\\{2,8}|&(?:#x[\da-f]{1,16};|#\d{1,16};?|[a-z]{2,6};)|\xef\xbf\xbd/gi
/** No escape is longer: these are the bytes that may be left of one whose end was not read. */
const escapeBytesMax = 20
const entities: Readonly<Record<string, string>> = {
  amp: '&',
  apos: "'",
  colon: ':',
  commat: '@',
  dollar: '$',
  equals: '=',
  excl: '!',
  gt: '>',
  lowbar: '_',
  lt: '<',
  num: '#',
  percnt: '%',
  period: '.',
  plus: '+',
  quest: '?',
  quot: '"',
  semi: ';',
  sol: '/',
}

export class SecretFinder {
  /** In their plain form; undefined if there are too many. */
  readonly #secrets: readonly string[] | undefined

  constructor(secrets: Iterable<string>) {
    const forms = new Set(Array.from(secrets, (secret) => formsOf(secret)).flat())
    this.#secrets = forms.size > secretsSearchedMax ? undefined : [...forms]
  }

  /**
   * Returns for each byte of a text whether it must not be shown: 1 if so, otherwise 0.
   *
   * @param isCut - whether the text went on: what it ends with may be the beginning of a secret
   */
  maskOf(bytes: string, isCut = false): Uint8Array {
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
      const cutFrom = isCut ? startOfCut(plain, secret) : plain.length
      if (cutFrom < plain.length) hide(cutFrom, plain.length - cutFrom)
    }
    for (const { 0: rest, index } of plain.matchAll(tokenFromColon)) {
      const from = firstDigit(plain, index)
      hide(from, index + rest.length - from)
    }
    for (const { 0: run, index } of plain.matchAll(base64Run)) {
      const isRunCut = isCut && index + run.length >= plain.length - escapeBytesMax
      if (hasSecretInBase64(run, secrets, isRunCut)) hide(index, run.length)
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
      return /u/i.test(escaped)
        ? characterOf(Number.parseInt(escaped.slice(-4), 16))
        : byteOf(escaped.slice(-2))
    case '&':
      return characterOfEntity(escaped.slice(1).replace(';', '').toLowerCase()) ?? escaped
    case '\\':
      return characterOfBackslash(escaped)
    default:
      return ''
  }
}

function byteOf(hex: string): string {
  return String.fromCharCode(Number.parseInt(hex, 16))
}

/** Returns undefined if there is none of that name. */
function characterOfEntity(name: string): string | undefined {
  if (name.startsWith('#x')) return characterOf(Number.parseInt(name.slice(2), 16))
  return name.startsWith('#') ? characterOf(Number(name.slice(1))) : entities[name]
}

/** Of `\u003a`, `\u{3a}`, `\x3a`, `\072`, `\/`, the end of a line, or backslashes alone, each after any number of backslashes. */
function characterOfBackslash(escaped: string): string {
  const last = escaped.at(-1)
  if (last === 'n' || last === 'N') return ''
  if (last === '"' || last === '/' || last === '\\') return last
  const [kind = '', ...digits] = escaped.replace(/^\\{1,8}/, '')
  if (kind !== 'u' && kind !== 'U') {
    const isHex = kind === 'x' || kind === 'X'
    return isHex ? byteOf(escaped.slice(-2)) : characterOf(Number.parseInt(escaped.slice(-3), 8))
  }
  return characterOf(Number.parseInt(digits.join('').replace('{', ''), 16))
}

const codePointMax = 0x10_ff_ff

function characterOf(code: number): string {
  if (code < 0x80) return String.fromCharCode(code)
  return code > codePointMax ? '?' : bytesOf(String.fromCodePoint(code))
}

/** A run may begin with characters that are no part of what was encoded, such as those of a path. */
function hasSecretInBase64(run: string, secrets: readonly string[], isCut: boolean): boolean {
  return [0, 1, 2, 3].some((skipped) => {
    const decoded = Buffer.from(run.slice(skipped), 'base64').toString('latin1')
    if (decoded.search(tokenFromColon) >= 0) return true
    return secrets.some(
      (secret) =>
        decoded.includes(secret) || (isCut && startOfCut(decoded, secret) < decoded.length),
    )
  })
}

/**
 * Returns where the beginning of a secret starts of which the rest was not read; the length of the text if there is none. After
 * it may be what is left of an escape. This is the search of Knuth, Morris and Pratt: at each place it knows the longest
 * beginning that ends there, and it is linear for any text and any secret.
 */
function startOfCut(text: string, secret: string): number {
  const borders = bordersOf(secret)
  const lastFrom = text.length - escapeBytesMax
  let start = text.length
  let matched = 0
  for (let at = Math.max(lastFrom - secret.length, 0); at < text.length; at++) {
    if (matched === secret.length) matched = borders[matched - 1] ?? 0
    matched = grown(matched, { secret, borders, next: text.charCodeAt(at) })
    if (at >= lastFrom && matched >= secretLengthMin) start = Math.min(start, at + 1 - matched)
  }
  return start
}

/** Returns for each beginning of a secret the length of the longest shorter one with which it ends. */
function bordersOf(secret: string): Uint16Array {
  const borders = new Uint16Array(secret.length)
  for (let at = 1; at < secret.length; at++) {
    const next = secret.charCodeAt(at)
    borders[at] = grown(borders[at - 1] ?? 0, { secret, borders, next })
  }
  return borders
}

interface Growing {
  readonly secret: string
  readonly borders: Uint16Array
  readonly next: number
}

/** Returns the length of the longest beginning of the secret after one more character. */
function grown(matched: number, { secret, borders, next }: Growing): number {
  let length = matched
  while (length > 0 && secret.charCodeAt(length) !== next) length = borders[length - 1] ?? 0
  return secret.charCodeAt(length) === next ? length + 1 : length
}
