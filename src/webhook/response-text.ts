/**
 * Keeps the beginning of the body of a response that is no success, for the operator who looks for the reason: an endpoint often
 * says there what is wrong with a delivery. The text has no secrets of the request.
 *
 * A secret may begin before the end of what is shown and end after it, so more is read than is shown. While secrets are blanked
 * out, the text keeps its length in bytes; so what is at the end of what was read, and may be a part of a secret, is never shown.
 */
import { kib } from '../limits.ts'
import { type RequestSecrets, secretsOf } from './without-secrets.ts'

export interface ResponseTextOptions {
  readonly bytesMax: number
  /** Returns what must not be shown besides the secrets of the request. */
  secrets(): readonly string[]
}

type ResponseHeaders = Readonly<Record<string, string | string[] | undefined>>

/** So many bytes are read beyond those that are shown: no secret is longer, as the url of a webhook has at most 2,048 characters. */
const secretBytesMax = 4 * kib

/** The text of one connection's last response. */
export class ResponseText {
  readonly #options: ResponseTextOptions
  #isReading = false
  #chunks: Buffer[] = []
  #bytesLeft = 0

  constructor(options: ResponseTextOptions) {
    this.#options = options
  }

  begin(status: number, headers: ResponseHeaders): void {
    const { 'content-encoding': encoding = 'identity' } = headers
    // Requests accept no encoding but identity.
    this.#isReading = (status < 200 || status > 299) && encoding === 'identity'
    this.#bytesLeft = this.#options.bytesMax + secretBytesMax
  }

  add(chunk: Buffer): void {
    if (!this.#isReading || this.#bytesLeft === 0) return
    const part = chunk.subarray(0, this.#bytesLeft)
    this.#bytesLeft -= part.length
    this.#chunks.push(part)
  }

  /** Returns the text; undefined if there is none. */
  read(request: RequestSecrets): string | undefined {
    if (this.#chunks.length === 0) return undefined
    const { bytesMax } = this.#options
    const text = printable(Buffer.concat(this.#chunks).toString())
    const hidden = [...secretsOf(request), ...this.#options.secrets()]
    const forms = hidden.flatMap((secret) => formsOf(secret))
    return collapsed(firstBytes(blanked(text, forms), bytesMax))
  }

  clear(): void {
    if (!this.#isReading) return
    this.#isReading = false
    this.#chunks = []
  }
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
  const longestFirst = [...secrets].toSorted((a, b) => b.length - a.length)
  return longestFirst
    .reduce((shown, secret) => shown.replaceAll(secret, blanks), text)
    .replaceAll(botToken, blanks)
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
