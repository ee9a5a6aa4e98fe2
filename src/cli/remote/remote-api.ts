/**
 * Calls to the private API of a running server, over the connection of postbote-client. It says in sentences for people what
 * went wrong.
 */
import { isIP } from 'node:net'
import type { Readable } from 'node:stream'
import { text as textOf } from 'node:stream/consumers'
import { connect } from 'node:tls'
import { type TObject, type TSchema, Type } from 'typebox'
import type { ServerConnection } from '../../../clients/typescript/server-connection.ts'
import { type Clock, systemClock } from '../../kit/clock.ts'
import type { Config } from '../../config/config.ts'
import { type CallResult, type InputOf, targetOf } from '../../api/target-of.ts'
import type { Operation, ResultOf } from '../../api/operation.ts'
import { readAdminKey } from '../../shard/data-directory.ts'
import type { UpstreamUrl } from '../../http/server-origin.ts'
import {
  answerMsMax,
  privateApiCallMsMax,
  privateApiIdleMs,
  privateApiResponseBytesMax,
} from '../limits.ts'
import { tell } from '../output/print-result.ts'
import { harmless } from '../output/text-table.ts'
import { placeOf, type ServerPlace, StrangerError } from './server-place.ts'

/** A command says what it waits for after so long. Chosen: most calls take a fraction of it, and people begin to wonder. */
const waitingSaidAfterMs = 2_000

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
  constructor(shown = 'the server') {
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

/** Which server it is, and how long to wait for it. */
interface ApiParts extends Pick<Patience, 'idleMs'> {
  readonly shown: string
  readonly url?: string | undefined
}

export class RemoteApi {
  readonly #connection: ServerConnection
  readonly #shown: string
  readonly #url: string | undefined
  readonly #patience: Patience

  /** Use `ofConfig` or `ofUrl`. */
  constructor(connection: ServerConnection, { shown, url, idleMs }: ApiParts) {
    this.#connection = connection
    this.#shown = shown
    this.#url = url
    this.#patience = { idleMs }
  }

  /**
   * Creates a client of the server that has the data directory of these options.
   *
   * @throws Error if no server runs on it, or if its admin key cannot be read.
   */
  static async ofConfig(config: Config, idleMs = privateApiIdleMs): Promise<RemoteApi> {
    const place = await placeOf(config)
    const key = await readAdminKey(config.dir, config.adminKeyFile)
    return RemoteApi.#at(place, key, idleMs)
  }

  /**
   * Creates a client of the server at a URL.
   *
   * @throws Error if the file has no key.
   */
  static async ofUrl(
    { origin, prefix }: UpstreamUrl,
    keyFile: string,
    idleMs = privateApiIdleMs,
  ): Promise<RemoteApi> {
    const key = await readAdminKey('', keyFile)
    const url = `${origin}${prefix}`
    return RemoteApi.#at({ shown: url, url }, key, idleMs)
  }

  /** The client of HTTP is loaded only when it is needed: `serve` starts without it. */
  static async #at(
    { shown, ...place }: ServerPlace,
    key: string,
    idleMs: number,
  ): Promise<RemoteApi> {
    const { ServerConnection: Connection } = await import(
      '../../../clients/typescript/server-connection.ts'
    )
    const options = { key, clock: systemClock, connections: 1, timeoutMs: idleMs }
    const limits = { isPatient: true, responseBytesMax: Number.MAX_SAFE_INTEGER }
    const connection = new Connection({ ...place, ...options, ...limits })
    return new RemoteApi(connection, { shown, url: place.url, idleMs })
  }

  /**
   * Makes a call.
   *
   * @returns the body of the response with status 200, which has the form of the result
   * @throws CallRefusedError for any other status; Error if no server responds, or another program than Postbote.
   */
  async call<Row extends Operation>(
    operation: Row,
    input: InputOf<Row>,
    extras: CallExtras = {},
  ): Promise<CallResult<Row>> {
    const body = extras.raw ?? (input.body === undefined ? undefined : JSON.stringify(input.body))
    const ending = new AbortController()
    const timer = systemClock.after(privateApiCallMsMax, () =>
      ending.abort(new Error('the response has no end')),
    )
    const how = { ...this.#patience, ...extras, body, signal: ending.signal }
    try {
      const response = await this.#begin(operation, input, how)
      const text = await this.#whole(await this.#accepted(response, 'application/json'))
      return { text, value: this.#result(operation, text) }
    } finally {
      timer.cancel()
    }
  }

  #result<Row extends Operation>(operation: Row, text: string): ResultOf<Row> {
    let value: unknown
    try {
      value = JSON.parse(text)
    } catch {
      throw new ForeignResponseError(this.#shown)
    }
    const schema = operation.result?.()
    if (schema !== undefined && !fitsSchema(schema, value)) {
      throw new ForeignResponseError(this.#shown)
    }
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the schema is where its type comes from
    return value as ResultOf<Row>
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
    const response = await this.#begin(operation, input, this.#patience)
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
    const { isTTY } = process.stderr
    const saying = systemClock.after(waitingSaidAfterMs, () => {
      if (isTTY) tell(`waiting for ${this.#shown} (Ctrl+C ends it)`)
    })
    try {
      return await this.#connection.open(call, { idleMs, signal, isLast: true })
    } catch (error) {
      throw (await this.#otherProtocol(error)) ?? unanswered(error, this.#shown)
    } finally {
      saying.cancel()
    }
  }

  /** Returns what is wrong if the server speaks TLS and was asked without, or the other way round. */
  async #otherProtocol(error: unknown): Promise<Error | undefined> {
    const url = this.#url ?? ''
    const cause = causeOf(error)
    if (cause instanceof StrangerError) return undefined
    const code = String(Object(cause).code)
    if (url.startsWith('https:') && noTlsCodes.test(code)) {
      return new Error(`the server at ${this.#shown} speaks no TLS: ask it with http`, { cause })
    }
    const mayBeTls = code.startsWith('HPE_') || code === 'UND_ERR_SOCKET' || code === 'ECONNRESET'
    return mayBeTls ? this.#tlsError(cause) : undefined
  }

  /** Returns an error if the server was asked without TLS and speaks it. */
  async #tlsError(cause: unknown): Promise<Error | undefined> {
    const url = this.#url ?? ''
    if (!url.startsWith('http:') || !(await speaksTls(url, systemClock))) return undefined
    return new Error(`the server at ${this.#shown} speaks TLS: ask it with https`, { cause })
  }

  /** nginx, Caddy and others say in words of their own, with status 400, that they speak TLS. */
  async #refused(response: ReceivedResponse): Promise<Error> {
    const error = new CallRefusedError(response)
    const isForeign = response.status === 400 && describeError(response) === undefined
    return (isForeign ? await this.#tlsError(error) : undefined) ?? error
  }

  /**
   * Returns the body of the response if the server has accepted the call. The address may be that of another program, which
   * may respond to anything with 200.
   */
  async #accepted({ statusCode, headers, body }: Received, type: string): Promise<Readable> {
    if (statusCode >= 400) {
      throw await this.#refused({ status: statusCode, body: await this.#whole(body) })
    }
    const [sent = ''] = String(headers['content-type']).split(';')
    if (statusCode === 200 && sent.trim().toLowerCase() === type) return body
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

type Received = Awaited<ReturnType<ServerConnection['open']>>

function ignore(): void {
  // Nobody reads this body.
}

/** What OpenSSL says of a server that answers a handshake with something else. */
const noTlsCodes = /^(?:EPROTO|ERR_SSL_WRONG_VERSION_NUMBER|ERR_SSL_PACKET_LENGTH_TOO_LONG)$/

function causeOf(error: unknown): unknown {
  return error instanceof Error ? (error.cause ?? error) : error
}

/** Whether a call was sent is all that matters to people. */
function unanswered(error: unknown, shown: string): Error {
  const cause = causeOf(error)
  if (cause instanceof StrangerError) return cause
  // What the parser of HTTP cannot read.
  if (String(Object(cause).code).startsWith('HPE_')) return new ForeignResponseError(shown)
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
function describeRefusal(response: ReceivedResponse): string {
  return describeError(response) ?? `status ${response.status}, without an error of Postbote`
}

/** Returns the error of Postbote in a response; undefined if there is none. */
function describeError({ status, body }: ReceivedResponse): string | undefined {
  try {
    const { error }: { readonly error?: unknown } = Object(JSON.parse(body))
    const { code, message }: { readonly code?: unknown; readonly message?: unknown } = Object(error)
    const isOurs = /^[A-Z_]{1,40}$/.test(String(code)) && typeof message === 'string'
    return isOurs ? `${status} ${String(code)}: ${harmless(message)}` : undefined
  } catch {
    return undefined
  }
}

/**
 * Whether a value has the form of a schema: its types and the fields that are always there. A check of the whole schema would
 * refuse what a later server sends, because later versions add fields, words and types of events (docs/know/promise.md). A field
 * that a later version adds to a result is optional in its row, because earlier servers do not send it. Pure.
 */
export function fitsSchema(schema: TSchema, value: unknown): boolean {
  if (Type.IsUnion(schema)) return schema.anyOf.some((each) => fitsSchema(each, value))
  if (Type.IsArray(schema)) {
    return Array.isArray(value) && value.every((item) => fitsSchema(schema.items, item))
  }
  if (Type.IsObject(schema)) return objectFits(schema, value)
  if (Type.IsNull(schema)) return value === null
  if (Type.IsInteger(schema)) return Number.isInteger(value)
  if (Type.IsNumber(schema)) return typeof value === 'number'
  if (Type.IsBoolean(schema)) return typeof value === 'boolean'
  if (Type.IsLiteral(schema)) return typeof value === typeof schema.const
  return Type.IsString(schema) || Type.IsEnum(schema) ? typeof value === 'string' : true
}

function objectFits({ properties }: TObject, value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  const fields = new Map<string, unknown>(Object.entries(value))
  return Object.entries(properties).every(([name, schema]) =>
    fields.has(name) ? fitsSchema(schema, fields.get(name)) : Type.IsOptional(schema),
  )
}

/**
 * Returns whether who listens at an address speaks TLS; false if there is no answer within `answerMsMax`. Nothing but a handshake
 * is sent, so it may be anybody. Never rejects.
 */
function speaksTls(url: string, clock: Pick<Clock, 'after'>): Promise<boolean> {
  const { hostname, port } = new URL(url)
  const host = hostname.replace(/^\[|\]$/g, '')
  return new Promise((resolve) => {
    const socket = connect({
      host,
      port: Number(port === '' ? 80 : port),
      rejectUnauthorized: false,
      ...(isIP(host) === 0 ? { servername: host } : {}),
    })
    const end = (isTls: boolean): void => {
      timer.cancel()
      socket.destroy()
      resolve(isTls)
    }
    const timer = clock.after(answerMsMax, () => end(false))
    socket.on('secureConnect', () => end(true))
    socket.on('error', () => end(false))
    socket.on('close', () => end(false))
  })
}
