/** Calls to the private API of a running server, for the command line. */
import { type IncomingMessage, request as requestHttp, type RequestOptions } from 'node:http'
import { request as requestHttps } from 'node:https'
import { urlToHttpOptions } from 'node:url'
import type { Config } from '../config/config.ts'
import { isSocketPath } from '../config/config-values.ts'
import { readAdminKey } from '../shard/data-directory.ts'
import type { UpstreamUrl } from '../upstream/upstream-url.ts'
import { privateApiIdleMsMax, privateApiResponseBytesMax } from './limits.ts'

/** One call of the private API. */
export interface PrivateApiCall {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly path: string
  /** Sent as JSON; a Buffer is sent as it is. */
  readonly body?: object | Buffer | undefined
  readonly headers?: Readonly<Record<string, string>>
}

export interface PrivateApiResponse {
  readonly status: number
  readonly body: string
}

/** How long to wait for a server. */
interface Patience {
  /** The call fails if the server sends nothing for so many milliseconds. */
  readonly idleMs: number
  /** Ends the call. */
  readonly signal?: AbortSignal
}

/** The server refused a call. The message has the code and the message of its error. */
export class CallRefusedError extends Error {
  /** The response, which is JSON if it comes from the server and not from a proxy before it. */
  readonly response: PrivateApiResponse

  constructor(response: PrivateApiResponse) {
    super(`the server refused the call: ${describeRefusal(response)}`)
    this.name = 'CallRefusedError'
    this.response = response
  }
}

/** Another program has responded. */
export class ForeignResponseError extends Error {
  constructor(shown: string) {
    super(
      `the response of ${shown} does not come from the private API of Postbote: check the address`,
    )
    this.name = 'ForeignResponseError'
  }
}

/** Where the private API is. */
export interface PrivateApiPlace {
  /** How errors name it. */
  readonly shown: string
  readonly isSecure: boolean
  readonly target: RequestOptions
  /** Path before that of each call. */
  readonly prefix: string
}

export class PrivateApiClient {
  readonly #place: PrivateApiPlace
  readonly #key: string

  /** Use `ofConfig` or `ofUrl`. */
  constructor(place: PrivateApiPlace, key: string) {
    this.#place = place
    this.#key = key
  }

  /**
   * Creates a client of the server with these options.
   *
   * @throws Error if its admin key cannot be read.
   */
  static async ofConfig(config: Config): Promise<PrivateApiClient> {
    const key = await readAdminKey({ directory: config.dir, keyFile: config.adminKeyFile })
    const { adminIpAddress: address, adminPort: port } = config
    if (isSocketPath(address)) {
      const target = { socketPath: address }
      return new PrivateApiClient({ shown: address, isSecure: false, target, prefix: '' }, key)
    }
    const host = address === '0.0.0.0' ? '127.0.0.1' : address === '::' ? '::1' : address
    const shown = `${address}:${port}`
    return new PrivateApiClient({ shown, isSecure: false, target: { host, port }, prefix: '' }, key)
  }

  /**
   * Creates a client of the server at a URL.
   *
   * @throws Error if the file has no key.
   */
  static async ofUrl({ origin, prefix }: UpstreamUrl, keyFile: string): Promise<PrivateApiClient> {
    const key = await readAdminKey({ directory: '', keyFile })
    const target = urlToHttpOptions(new URL(origin))
    const isSecure = origin.startsWith('https:')
    return new PrivateApiClient({ shown: `${origin}${prefix}`, isSecure, target, prefix }, key)
  }

  /**
   * Makes a call.
   *
   * @returns the body of a response with status 200, which is JSON
   * @throws CallRefusedError for any other status; Error if no server responds, or another program than Postbote.
   */
  async call(call: PrivateApiCall): Promise<string> {
    const response = await this.#begin(call, { idleMs: privateApiIdleMsMax })
    return (await this.#whole(await this.#accepted(response, 'application/json'))).body
  }

  /**
   * Makes a call.
   *
   * @returns the response with any status
   * @throws Error if no server responds.
   */
  async send(call: PrivateApiCall): Promise<PrivateApiResponse> {
    return this.#whole(await this.#begin(call, { idleMs: privateApiIdleMsMax }))
  }

  /**
   * Opens a response that lasts, such as a tail.
   *
   * @returns the parts of its text as they arrive. Its iterator throws an Error if the connection is lost.
   * @throws CallRefusedError for any status but 200; Error if no server responds, or another program than Postbote.
   */
  async open(path: string, patience: Patience): Promise<AsyncIterable<string>> {
    const response = await this.#begin({ method: 'GET', path }, patience)
    return this.#parts(await this.#accepted(response, 'text/event-stream'))
  }

  /**
   * Makes a call whose result may be of any size.
   *
   * @returns the response with status 200. Read it to its end, or destroy it.
   * @throws CallRefusedError for any other status; Error if no server responds, or another program than Postbote.
   */
  async stream(call: PrivateApiCall): Promise<IncomingMessage> {
    const response = await this.#begin(call, { idleMs: privateApiIdleMsMax })
    return this.#accepted(response, 'application/octet-stream')
  }

  /**
   * Returns the response if the server has accepted the call. The address may be that of another program, which may
   * respond to anything with 200.
   */
  async #accepted(response: IncomingMessage, type: string): Promise<IncomingMessage> {
    if (response.statusCode !== 200) throw new CallRefusedError(await this.#whole(response))
    if (response.headers['content-type']?.startsWith(type) === true) return response
    response.destroy()
    throw new ForeignResponseError(this.#place.shown)
  }

  async *#parts(response: IncomingMessage): AsyncGenerator<string> {
    response.setEncoding('utf8')
    try {
      for await (const text of response) yield String(text)
    } catch (cause) {
      throw new Error(lostText(this.#place.shown, cause), { cause })
    }
  }

  /** Resolves when the response begins. */
  #begin(call: PrivateApiCall, { idleMs, signal }: Patience): Promise<IncomingMessage> {
    const { target, prefix, isSecure, shown } = this.#place
    const { method, path, body, headers } = call
    const request = isSecure ? requestHttps : requestHttp
    return new Promise((resolve, reject) => {
      const options: RequestOptions = {
        ...target,
        method,
        path: `${prefix}${path}`,
        headers: {
          ...headers,
          authorization: `Bearer ${this.#key}`,
          'content-type': 'application/json',
        },
        agent: false,
        timeout: idleMs,
        ...(signal === undefined ? {} : { signal }),
      }
      let isSent = false
      const outgoing = request(options, resolve)
      // With TLS the request is on its way only after the handshake.
      outgoing.on('socket', (socket) =>
        socket.once(isSecure ? 'secureConnect' : 'connect', () => (isSent = true)),
      )
      outgoing.on('timeout', () => outgoing.destroy(new Error('the server does not respond')))
      outgoing.on('error', (cause) => {
        const refused = new Error(`no server responds at ${shown}${reasonOf(cause)}`, { cause })
        reject(isSent ? lost(shown, cause) : refused)
      })
      outgoing.end(
        body === undefined || Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body)),
      )
    })
  }

  /** Reads a response to its end. */
  #whole(response: IncomingMessage): Promise<PrivateApiResponse> {
    return new Promise((resolve, reject) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => {
        text += chunk
        if (text.length > privateApiResponseBytesMax) {
          response.destroy(new Error('the response is too large'))
        }
      })
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body: text }))
      response.on('error', (cause) => reject(lost(this.#place.shown, cause)))
    })
  }
}

function lost(shown: string, cause: unknown): Error {
  const text = `${lostText(shown, cause)}, so the call may have been made or not`
  return new Error(text, { cause })
}

function lostText(shown: string, cause: unknown): string {
  return `the connection to ${shown} was lost${reasonOf(cause)}`
}

/** The codes of OpenSSL for a chain that does not end at a known authority. */
const certificateCodes = /SELF_SIGNED|UNABLE_TO_(GET|VERIFY)/
const certificateAdvice =
  'no known authority has signed its certificate; if the certificate is right, name its authority in NODE_EXTRA_CA_CERTS'

/** The message of an error of a connection names its address again, so its code is shown, if it has one. */
function reasonOf(cause: unknown): string {
  if (!(cause instanceof Error)) return ''
  if ('code' in cause && typeof cause.code === 'string') {
    const advice = certificateCodes.test(cause.code) ? `: ${certificateAdvice}` : ''
    return ` (${cause.code})${advice}`
  }
  return cause.message === '' ? '' : ` (${cause.message})`
}

/** A proxy before the server may respond with anything, which is not shown. */
function describeRefusal({ status, body }: PrivateApiResponse): string {
  try {
    const { error }: { error: { code: string; message: string } } = JSON.parse(body)
    return `${status} ${error.code}: ${error.message}`
  } catch {
    return `status ${status}, without an error of Postbote`
  }
}
