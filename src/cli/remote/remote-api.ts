/**
 * Calls to the private API of a running server, over the connection of postbote-client. It says in sentences for people what
 * went wrong.
 */
import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Readable } from 'node:stream'
import { text as textOf } from 'node:stream/consumers'
import type { ServerConnection, ServerConnectionOptions } from '../../client/server-connection.ts'
import { systemClock } from '../../clock.ts'
import type { Config } from '../../config/config.ts'
import { isSocketPath } from '../../config/config-values.ts'
import { type CallResult, type InputOf, targetOf } from '../../operations/target-of.ts'
import type { Operation } from '../../operations/operation.ts'
import { readAdminKey } from '../../shard/data-directory.ts'
import type { UpstreamUrl } from '../../upstream/upstream-url.ts'
import { privateApiResponseBytesMax } from '../limits.ts'

/**
 * A command waits this long for a server that sends nothing. Chosen: longer than the replay of all dead letters of a bot
 * takes, which is the longest call.
 */
const privateApiIdleMsMax = 120_000

/** What is sent besides the input of a call. */
export interface CallExtras {
  /** In place of the body of the input: sent as it is. */
  readonly raw?: string
  readonly headers?: Readonly<Record<string, string>>
}

interface ReceivedResponse {
  readonly status: number
  readonly body: string
}

/** The server refused a call. The message has the code and the message of its error. */
export class CallRefusedError extends Error {
  /** The response, which is JSON if it comes from the server and not from a proxy before it. */
  readonly response: ReceivedResponse

  constructor(response: ReceivedResponse) {
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

/** How long to wait for a server. */
interface Patience {
  /** The call fails if the server sends nothing for so many milliseconds. */
  readonly idleMs: number
  /** Ends the call. */
  readonly signal?: AbortSignal
}

/** Where the private API is. */
interface Place {
  /** How errors name it. */
  readonly shown: string
  readonly url?: string
  readonly socketPath?: string
  readonly judge?: ServerConnectionOptions['judge']
}

const usualPatience: Patience = { idleMs: privateApiIdleMsMax }

export class RemoteApi {
  readonly #connection: ServerConnection
  readonly #shown: string

  /** Use `ofConfig` or `ofUrl`. */
  constructor(connection: ServerConnection, shown: string) {
    this.#connection = connection
    this.#shown = shown
  }

  /**
   * Creates a client of the server with these options.
   *
   * @throws Error if its admin key cannot be read.
   */
  static async ofConfig(config: Config): Promise<RemoteApi> {
    const key = await readAdminKey({ directory: config.dir, keyFile: config.adminKeyFile })
    const { adminIpAddress: address, adminPort: port } = config
    if (isSocketPath(address)) return RemoteApi.#at({ shown: address, socketPath: address }, key)
    const host = address === '0.0.0.0' ? '127.0.0.1' : address === '::' ? '::1' : address
    const place = `${host.includes(':') ? `[${host}]` : host}:${port}`
    const shown = `${address}:${port}`
    const { adminCert } = config
    if (adminCert === undefined) return RemoteApi.#at({ shown, url: `http://${place}` }, key)
    return RemoteApi.#at({ shown, url: `https://${place}`, judge: onlyWith(adminCert) }, key)
  }

  /**
   * Creates a client of the server at a URL.
   *
   * @throws Error if the file has no key.
   */
  static async ofUrl({ origin, prefix }: UpstreamUrl, keyFile: string): Promise<RemoteApi> {
    const key = await readAdminKey({ directory: '', keyFile })
    const url = `${origin}${prefix}`
    return RemoteApi.#at({ shown: url, url }, key)
  }

  /** The client of HTTP is loaded only when it is needed: `serve` starts without it. */
  static async #at({ shown, ...place }: Place, key: string): Promise<RemoteApi> {
    const { ServerConnection: Connection } = await import('../../client/server-connection.ts')
    const options = { key, clock: systemClock, connections: 1, timeoutMs: privateApiIdleMsMax }
    const limits = { isPatient: true, responseBytesMax: Number.MAX_SAFE_INTEGER }
    return new RemoteApi(new Connection({ ...place, ...options, ...limits }), shown)
  }

  /**
   * Makes a call.
   *
   * @returns the body of the response with status 200
   * @throws CallRefusedError for any other status; Error if no server responds, or another program than Postbote.
   */
  async call<Row extends Operation>(
    operation: Row,
    input: InputOf<Row>,
    extras: CallExtras = {},
  ): Promise<CallResult<Row>> {
    const body = extras.raw ?? (input.body === undefined ? undefined : JSON.stringify(input.body))
    const response = await this.#begin(operation, input, { ...usualPatience, ...extras, body })
    const text = await this.#whole(await this.#accepted(response, 'application/json'))
    return { text, value: JSON.parse(text) }
  }

  /**
   * Opens a response that lasts, such as a tail.
   *
   * @returns the parts of its text as they arrive. Its iterator throws an Error if the connection is lost.
   * @throws CallRefusedError for any status but 200; Error if no server responds, or another program than Postbote.
   */
  async follow<Row extends Operation>(
    operation: Row,
    input: InputOf<Row>,
    patience: Patience,
  ): Promise<AsyncIterable<string>> {
    const response = await this.#begin(operation, input, patience)
    return this.#parts(await this.#accepted(response, 'text/event-stream'))
  }

  /**
   * Makes a call whose result may be of any size.
   *
   * @returns the response with status 200. Read it to its end, or destroy it.
   * @throws CallRefusedError for any other status; Error if no server responds, or another program than Postbote.
   */
  async stream<Row extends Operation>(operation: Row, input: InputOf<Row>): Promise<Readable> {
    const response = await this.#begin(operation, input, usualPatience)
    return this.#accepted(response, 'application/octet-stream')
  }

  async #begin(
    operation: Operation,
    input: InputOf<Operation>,
    how: Patience & {
      readonly body?: string | undefined
      readonly headers?: CallExtras['headers']
    },
  ): Promise<Received> {
    const { body, headers, idleMs, signal } = how
    const call = {
      method: operation.method,
      path: targetOf(operation, input),
      headers: { 'content-type': 'application/json', ...headers },
      ...(body === undefined ? {} : { body }),
    }
    try {
      return await this.#connection.open(call, { idleMs, signal, isLast: true })
    } catch (error) {
      throw unanswered(error, this.#shown)
    }
  }

  /**
   * Returns the body of the response if the server has accepted the call. The address may be that of another program, which
   * may respond to anything with 200.
   */
  async #accepted({ statusCode, headers, body }: Received, type: string): Promise<Readable> {
    if (statusCode !== 200) {
      throw new CallRefusedError({ status: statusCode, body: await this.#whole(body) })
    }
    if (String(headers['content-type']).startsWith(type)) return body
    body.on('error', ignore).destroy()
    throw new ForeignResponseError(this.#shown)
  }

  async *#parts(body: Readable): AsyncGenerator<string> {
    body.setEncoding('utf8')
    try {
      for await (const text of body) yield String(text)
    } catch (cause) {
      throw new Error(lostText(this.#shown, cause), { cause })
    }
  }

  /** Reads a response to its end. */
  async #whole(body: Readable): Promise<string> {
    let bytes = 0
    body.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > privateApiResponseBytesMax) body.destroy(new Error('the response is too large'))
    })
    try {
      return await textOf(body)
    } catch (cause) {
      throw lost(this.#shown, cause)
    }
  }
}

/**
 * Accepts only a server that shows the certificate in this file, whoever signed it. The names in the certificate are not compared,
 * because they are those under which clients reach the server, and not the address of the listener. It may have expired: whoever
 * has its key is the server.
 */
function onlyWith(file: string): NonNullable<Place['judge']> {
  const certificate = certificateIn(file)
  return (shown) =>
    shown.equals(certificate.raw)
      ? undefined
      : new Error(`it shows another certificate than ${file}: after a renewal, reload the server`)
}

function certificateIn(file: string): X509Certificate {
  try {
    return new X509Certificate(readFileSync(file, 'utf8'))
  } catch (cause) {
    throw new Error(`the certificate of --admin-cert cannot be read from ${file}`, { cause })
  }
}

type Received = Awaited<ReturnType<ServerConnection['open']>>

function ignore(): void {
  // Nobody reads this body.
}

/** Whether a call was sent is all that matters to people. */
function unanswered(error: unknown, shown: string): Error {
  const cause = error instanceof Error ? (error.cause ?? error) : error
  const isSent = !(Object(error).code === 'CONNECTION_FAILED')
  if (isSent) return lost(shown, cause)
  return new Error(`no server responds at ${shown}${reasonOf(cause)}`, { cause })
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

/** What the codes of the client of HTTP say. */
const reasons: Readonly<Record<string, string>> = {
  UND_ERR_SOCKET: 'ECONNRESET',
  UND_ERR_HEADERS_TIMEOUT: 'the server does not respond',
  UND_ERR_BODY_TIMEOUT: 'the server does not respond',
  UND_ERR_CONNECT_TIMEOUT: 'the server does not respond',
}

/** The message of an error of a connection names its address again, so its code is shown, if it has one. */
function reasonOf(cause: unknown): string {
  if (!(cause instanceof Error)) return ''
  if ('code' in cause && typeof cause.code === 'string') {
    const advice = certificateCodes.test(cause.code) ? `: ${certificateAdvice}` : ''
    return ` (${reasons[cause.code] ?? cause.code})${advice}`
  }
  return cause.message === '' ? '' : ` (${cause.message})`
}

/** A proxy before the server may respond with anything, which is not shown. */
function describeRefusal({ status, body }: ReceivedResponse): string {
  try {
    const { error }: { error: { code: string; message: string } } = JSON.parse(body)
    return `${status} ${error.code}: ${error.message}`
  } catch {
    return `status ${status}, without an error of Postbote`
  }
}
