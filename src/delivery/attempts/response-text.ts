/**
 * Keeps the headers and the beginning of the body of a response that is no success, for the operator who looks for the reason: an
 * endpoint often says there what is wrong with a delivery. The texts have no secrets of the request.
 */
import { SecretFinder } from '../../kit/text/secret-finder.ts'
import { secretBytesMax, shownText } from '../../kit/text/shown-text.ts'
import { type RequestSecrets, secretsOf } from '../endpoint/request-secrets.ts'
import { type ResponseHeaders, shownHeaders } from './response-headers.ts'

export interface ResponseTextOptions {
  readonly bytesMax: number
  /** Returns what must not be shown besides the secrets of the request. */
  secrets(): readonly string[]
}

/** The text of one connection's last response. */
export class ResponseText {
  readonly #options: ResponseTextOptions
  #headers: ResponseHeaders | undefined
  #isReading = false
  #chunks: Buffer[] = []
  #bytesLeft = 0
  #secrets: SecretFinder | undefined

  constructor(options: ResponseTextOptions) {
    this.#options = options
  }

  begin(status: number, headers: ResponseHeaders): void {
    const { 'content-encoding': encoding = 'identity' } = headers
    const isSuccess = status >= 200 && status <= 299
    this.#headers = isSuccess ? undefined : headers
    // Requests accept no encoding but identity.
    this.#isReading = !isSuccess && encoding === 'identity'
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
    const text = Buffer.concat(this.#chunks).toString()
    return shownText(text, {
      bytesMax: this.#options.bytesMax,
      secrets: this.#secretsOf(request),
    })
  }

  /** Returns the headers as a text (response-headers.ts); undefined if there are none to show. */
  readHeaders(request: RequestSecrets): string | undefined {
    if (this.#headers === undefined) return undefined
    return shownHeaders(this.#headers, this.#secretsOf(request))
  }

  clear(): void {
    this.#headers = undefined
    this.#secrets = undefined
    if (!this.#isReading) return
    this.#isReading = false
    this.#chunks = []
  }

  #secretsOf(request: RequestSecrets): SecretFinder {
    this.#secrets ??= new SecretFinder([...secretsOf(request), ...this.#options.secrets()])
    return this.#secrets
  }
}
