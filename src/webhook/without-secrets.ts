/**
 * Blanks out in a text of an endpoint what only the endpoint and this server know. An endpoint that refuses a request often
 * says what it got; errors of deliveries are shown to operators, in events and in logs, and the bodies of responses to operators.
 */
import { isPublicHeader } from './request-headers.ts'

/** The secrets of a request: its path, which may contain a token, and the values of its headers, in alternation with names. */
export interface RequestSecrets {
  readonly path: string
  readonly headers: readonly string[]
}

/** Shorter parts are ordinary words, and blanking them out would hide what the endpoint says. */
const headerLengthMin = 4
const pathPartLengthMin = 8

/** Returns the printable characters of a text, with `***` in place of each secret. */
export function withoutSecrets(text: string, secrets: RequestSecrets): string {
  const ascii = text.replaceAll(/[^\u0020-\u007e]/g, '')
  if (ascii === '') return ''
  return replaced(ascii, [...secretsOf(secrets)], () => '***')
}

/** Returns the secrets, in each form in which an endpoint may show them. */
export function secretsOf({ path, headers }: RequestSecrets): ReadonlySet<string> {
  const values = headers.flatMap((value, nth) => {
    const name = headers[nth - 1] ?? ''
    if (nth % 2 === 0 || isPublicHeader(name, value)) return []
    return name.toLowerCase() === 'authorization' ? credentialsIn(value) : [value]
  })
  const spellings = [path, decoded(path)]
  const parts = spellings.flatMap((all) => [all, ...all.split(/[/?&=]/), ...all.split(/[/?&=:]/)])
  const secrets = [
    ...values.filter(({ length }) => length >= headerLengthMin),
    ...parts.filter(({ length }) => length >= pathPartLengthMin),
  ]
  return new Set(secrets.flatMap((secret) => [secret, inJson(secret)]))
}

/** An endpoint that repeats a header in JSON escapes the quotation marks and backslashes of its value. */
function inJson(text: string): string {
  return JSON.stringify(text).slice(1, -1)
}

/** Of `Basic <base64 of user:password>`, all forms that an endpoint may show. */
function credentialsIn(authorization: string): readonly string[] {
  const encoded = authorization.slice(authorization.indexOf(' ') + 1)
  const plain = Buffer.from(encoded, 'base64').toString()
  return [encoded, plain, plain.slice(plain.indexOf(':') + 1)]
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

/**
 * Returns a text in which secrets, each in the forms in which an endpoint may show it, and tokens of bots are blanked out. It has
 * one line, and its length in bytes remains, so that what follows may be cut off with `shownBytes`.
 */
export function blankedText(text: string, secrets: readonly string[]): string {
  return blankedTexts([text], secrets)[0] ?? ''
}

/** Does the same with several texts at once. */
export function blankedTexts(
  texts: readonly string[],
  secrets: readonly string[],
): readonly string[] {
  const forms = secrets.flatMap((secret) => formsOf(secret))
  return blanked(texts.map((text) => printable(text)).join('\n'), forms).split('\n')
}

/** Returns the beginning of a blanked text, with `***` in place of each secret. */
export function shownBytes(blankedOut: string, bytesMax: number): string {
  return collapsed(firstBytes(blankedOut, bytesMax))
}

/**
 * Returns a text in one line: line ends and tabs become blanks. Other characters that a terminal may act upon become the one
 * that also stands for invalid UTF-8.
 */
function printable(text: string): string {
  return text.replaceAll(/[\t\n\r]/g, ' ').replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '\ufffd')
}

/** Stands for one byte of a secret. The text has no such character any more. */
const blank = '\u0000'
/** A token of a bot, whichever. The server itself does not know it. */
const botToken = /\d+(?::|%3a)[\w-]{30,}/gi

function blanked(text: string, secrets: readonly string[]): string {
  return replaced(text, secrets, blanks).replaceAll(botToken, blanks)
}

/** The longest first, because another one may be a part of it. */
function replaced(
  text: string,
  secrets: readonly string[],
  substitute: (secret: string) => string,
): string {
  const longestFirst = secrets.toSorted((a, b) => b.length - a.length)
  return longestFirst.reduce((shown, secret) => shown.replaceAll(secret, substitute), text)
}

function blanks(secret: string): string {
  return blank.repeat(Buffer.byteLength(secret))
}

/** A secret, which may be in base64: also in base64url, without padding, and with the slashes as PHP writes them in JSON. */
function formsOf(key: string): readonly string[] {
  const bare = key.replace(/=+$/, '')
  const url = bare.replaceAll('+', '-').replaceAll('/', '_')
  return [key, bare, url, bare.replaceAll('/', String.raw`\/`)]
}

function firstBytes(text: string, bytesMax: number): string {
  const bytes = Buffer.from(text)
  if (bytes.length <= bytesMax) return text
  let end = bytesMax
  // Not within a character: its further bytes begin with the bits 10.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--
  return bytes.toString('utf8', 0, end)
}

function collapsed(text: string): string {
  return text.split(/\0+/).join('***')
}
