/**
 * Connects the client to the private API with undici: a pool for single calls and a separate connection for each stream.
 *
 * Only this file translates the errors of undici into errors of the client.
 */
import type { Socket } from 'node:net'
import { buildConnector, Client, type Dispatcher, Pool } from 'undici'
import type { Clock, Timer } from '../../src/kit/clock.ts'
import { clientResponseBytesMax, firstConnectMs, firstContactMs, firstReportMs } from './limits.ts'
import { responseError, parsedOrUndefined } from './response-error.ts'
import { PostboteClientError, withoutKey } from './postbote-client-error.ts'

/** Where the server is and how to connect to it. */
export interface ServerConnectionOptions {
  readonly url?: string | URL | undefined
  /** The option that `url` comes from, for errors. Default: `url`. */
  readonly urlOption?: string
  readonly socketPath?: string | undefined
  readonly key: string
  readonly connections: number
  readonly timeoutMs: number
  readonly clock: Clock
  /**
   * Judges who has the other end of a connection, before anything is sent, in place of the authorities that this machine knows.
   * Returns what is wrong.
   */
  readonly judge?: JudgePeer | undefined
  /** Whether the first connection may take as long as any other. */
  readonly isPatient?: boolean
  /** A response of a call may have this many bytes. Default: `clientResponseBytesMax`. */
  readonly responseBytesMax?: number
}

export type JudgePeer = (socket: Socket) => Error | undefined

/** How a response is waited for. */
export interface OpenOptions {
  readonly signal?: AbortSignal | undefined
  /** The call fails if the server sends nothing for so many milliseconds. Default: the caller has its own time limit. */
  readonly idleMs?: number
  /** Whether the connection is closed after the response. */
  readonly isLast?: boolean
}

/** A single call of the private API. */
export interface PrivateCall {
  readonly method: Dispatcher.HttpMethod
  readonly path: string
  readonly body?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** The connections of one client. */
export class ServerConnection {
  readonly #origin: string
  readonly #pathPrefix: string
  readonly #key: string
  readonly #headers: Readonly<Record<string, string>>
  readonly #connect: buildConnector.connector
  readonly #pool: Pool
  readonly #judge: JudgePeer | undefined
  #closed: Promise<void> | undefined
  readonly #clock: Clock
  /** When the first connection was tried, on the monotonic clock; `reached` once one was made. */
  #triedMs: number | 'reached' | undefined

  /**
   * Prepares the connections; the first call opens one.
   *
   * @throws TypeError if `url`, `socketPath` or `key` cannot be used.
   */
  constructor(options: ServerConnectionOptions) {
    const { origin, pathPrefix } = placeOf(options)
    this.#origin = origin
    this.#pathPrefix = pathPrefix
    this.#key = keyIn(options.key)
    this.#headers = { authorization: `Bearer ${this.#key}` }
    const { socketPath, timeoutMs, connections, isPatient = false } = options
    const { responseBytesMax = clientResponseBytesMax } = options
    this.#clock = options.clock
    this.#judge = options.judge
    this.#connect = this.#connector(socketPath ?? origin, isPatient, {
      ...(options.judge === undefined ? {} : { rejectUnauthorized: false }),
      timeout: timeoutMs,
      socketPath: socketPath ?? null,
    })
    this.#pool = new Pool(origin, {
      connect: this.#connect,
      connections,
      maxResponseSize: responseBytesMax,
    })
  }

  /**
   * Makes one attempt of a call.
   *
   * @param call - The call.
   * @param signal - Ends the attempt.
   * @returns The parsed JSON of a response with status 200.
   * @throws PostboteClientError: ABORTED if the signal was aborted, CONNECTION_FAILED, CONNECTION_LOST,
   *   UNEXPECTED_ANSWER, or the server's code.
   */
  async call(call: PrivateCall, signal: AbortSignal): Promise<unknown> {
    try {
      const response = await this.open(call, { signal })
      const text = await response.body.text()
      if (response.statusCode !== 200) throw this.withoutKey(responseError(response, text))
      return parsed(text)
    } catch (error) {
      throw toClientError(error)
    }
  }

  /**
   * Makes one attempt of a call, up to the beginning of its response.
   *
   * @returns The response with any status. Its body has to be read or destroyed.
   * @throws PostboteClientError: ABORTED, CONNECTION_FAILED or CONNECTION_LOST.
   */
  async open(
    call: PrivateCall,
    { signal, idleMs = 0, isLast = false }: OpenOptions,
  ): Promise<Dispatcher.ResponseData> {
    try {
      return await this.#pool.request({
        ...this.requestOf(call),
        ...(signal === undefined ? {} : { signal }),
        headersTimeout: idleMs,
        bodyTimeout: idleMs,
        reset: isLast,
      })
    } catch (error) {
      throw toClientError(error)
    }
  }

  /** Returns an error that has a text of the server without the key. */
  withoutKey(error: PostboteClientError): PostboteClientError {
    return withoutKey(error, this.#key)
  }

  /** Returns for how long the client has tried to reach the server; undefined before that, and once it has reached it. */
  unreachedMs(): number | undefined {
    return typeof this.#triedMs === 'number' ? this.#clock.monotonicMs() - this.#triedMs : undefined
  }

  /**
   * Every failure before the connection is established, including the TLS handshake, is CONNECTION_FAILED: nothing was sent.
   *
   * @param place - the address or the socket, for the error.
   * @param isPatient - whether the first connection may take as long as any other.
   */
  #connector(
    place: string,
    isPatient: boolean,
    options: buildConnector.BuildOptions & { readonly timeout: number },
  ): buildConnector.connector {
    const connect = buildConnector(options)
    // Closes the socket of an attempt that has failed; `#firstLimit` reports the failure before that.
    const connectFirst = buildConnector({
      ...options,
      timeout: Math.min(options.timeout, firstConnectMs),
    })
    return (to, callback) => {
      const isHasty = this.#triedMs !== 'reached' && !isPatient
      this.#triedMs ??= this.#clock.monotonicMs()
      let isOver = false
      const end: buildConnector.Callback = (...[cause, socket]) => {
        // After the limit: nobody waits for this connection any more.
        if (isOver) {
          socket?.destroy()
          return
        }
        isOver = true
        limit?.cancel()
        if (cause !== null) return callback(connectionFailed(place, cause), null)
        const refusal = this.#judge?.(socket)
        if (refusal !== undefined) {
          socket.destroy()
          return callback(connectionFailed(place, refusal), null)
        }
        this.#triedMs = 'reached'
        callback(null, socket)
      }
      const limit = isHasty ? this.#firstLimit(options.timeout, (cause) => end(cause, null)) : null
      if (isHasty) connectFirst(to, end)
      else connect(to, end)
    }
  }

  /** The timers of undici are up to half a second late, which is too much for the first report. */
  #firstLimit(timeoutMs: number, onOver: (cause: Error) => void): Timer {
    const triedForMs = this.unreachedMs() ?? 0
    // A later call has one attempt.
    const leftMs = triedForMs > firstContactMs ? firstConnectMs : firstReportMs - triedForMs
    const limitMs = Math.min(timeoutMs, firstConnectMs, leftMs)
    return this.#clock.after(limitMs, () =>
      onOver(new Error(`expected a connection within ${Math.round(limitMs)} ms`)),
    )
  }

  /** Returns a client with a connection for one request. The caller destroys it when the request is over. */
  streamClient(): Client {
    return new Client(this.#origin, { connect: this.#connect })
  }

  /** Returns the options of a request, for `streamClient` or the pool. It has no time limits. */
  requestOf({ method, path, headers, body }: PrivateCall): Dispatcher.RequestOptions {
    return {
      method,
      path: this.#pathPrefix + path,
      headers: { ...this.#headers, ...headers },
      ...(body === undefined ? {} : { body }),
      headersTimeout: 0,
      bodyTimeout: 0,
    }
  }

  /** Closes the pool. Call this when no call is in progress. It does not wait for connections that are being opened. */
  close(): Promise<void> {
    this.#closed ??= this.#pool.destroy()
    return this.#closed
  }
}

/**
 * Converts anything that undici throws.
 *
 * @returns The error itself if it is one of the client; ABORTED for an AbortError; otherwise CONNECTION_LOST.
 */
export function toClientError(error: unknown): PostboteClientError {
  if (error instanceof PostboteClientError) return error
  if (error instanceof Error && error.name === 'AbortError') {
    return new PostboteClientError('ABORTED', { cause: error })
  }
  return new PostboteClientError('CONNECTION_LOST', { cause: error })
}

function connectionFailed(place: string, cause: Error): PostboteClientError {
  const reason = 'code' in cause ? String(cause.code) : cause.message
  const message = `The client could not connect to ${place} (${reason}), and nothing was sent`
  return new PostboteClientError('CONNECTION_FAILED', { message, cause })
}

function parsed(text: string): unknown {
  const response = parsedOrUndefined(text)
  if (response === undefined) throw new PostboteClientError('UNEXPECTED_ANSWER')
  return response
}

function placeOf({ url, urlOption = 'url', socketPath }: ServerConnectionOptions): {
  readonly origin: string
  readonly pathPrefix: string
} {
  if (socketPath !== undefined) {
    if (url !== undefined) throw new TypeError('url and socketPath: expected one of them')
    return { origin: 'http://localhost', pathPrefix: '' }
  }
  const place = String(url ?? 'http://127.0.0.1:8082')
  if (!URL.canParse(place)) {
    throw new TypeError(`${urlOption}: expected a URL such as http://127.0.0.1:8082`)
  }
  const { protocol, origin, pathname, search, hash, username, password } = new URL(place)
  const isPlain = `${search}${hash}${username}${password}` === ''
  if (!/^https?:$/.test(protocol) || !isPlain) {
    throw new TypeError(
      `${urlOption}: expected http or https, a host, and optionally a port and a path`,
    )
  }
  return { origin, pathPrefix: pathname.replace(/(?<!\/)\/+$/, '') }
}

/** The error does not show the text, because it may be most of a key. */
function keyIn(given: unknown): string {
  const key = typeof given === 'string' ? given.trim() : ''
  if (!/^[\x21-\x7e]+$/.test(key)) {
    throw new TypeError('key: expected a key, printable ASCII characters without spaces')
  }
  return key
}
