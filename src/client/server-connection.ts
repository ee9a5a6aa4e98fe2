/**
 * The way to the private API, undici's part of the client: single calls over a pool of kept connections, and a connection
 * of its own for each stream. What undici reports is put into the client's words here and nowhere else.
 */
import { buildConnector, Client, type Dispatcher, Pool } from 'undici'
import { clientAnswerBytesMax } from '../limits.ts'
import { answerError, parsedOrUndefined } from './answer-error.ts'
import { PostboteClientError } from './postbote-client-error.ts'

export interface ServerConnectionOptions {
  readonly url?: string | URL | undefined
  readonly socketPath?: string | undefined
  readonly key: string
  readonly connections: number
  readonly timeoutMs: number
}

export interface PrivateCall {
  readonly method: 'GET' | 'POST' | 'DELETE'
  readonly path: string
  readonly body?: string
  readonly headers?: Readonly<Record<string, string>>
}

export class ServerConnection {
  readonly #origin: string
  readonly #pathPrefix: string
  readonly #headers: Readonly<Record<string, string>>
  readonly #connect: buildConnector.connector
  readonly #pool: Pool
  #closed: Promise<void> | undefined

  constructor(options: ServerConnectionOptions) {
    const { origin, pathPrefix } = placeOf(options)
    this.#origin = origin
    this.#pathPrefix = pathPrefix
    this.#headers = { authorization: `Bearer ${keyIn(options.key)}` }
    const { socketPath, timeoutMs, connections } = options
    this.#connect = connector({ timeout: timeoutMs, socketPath: socketPath ?? null })
    this.#pool = new Pool(origin, {
      connect: this.#connect,
      connections,
      maxResponseSize: clientAnswerBytesMax,
    })
  }

  /** One attempt: the answer to it as JSON. Rejects with a PostboteClientError, ABORTED where the signal was. */
  async call(call: PrivateCall, signal: AbortSignal): Promise<unknown> {
    try {
      const { method, body } = call
      const answer = await this.#pool.request({
        method,
        path: this.#pathPrefix + call.path,
        headers: { ...this.#headers, ...call.headers },
        ...(body === undefined ? {} : { body }),
        signal,
        // The caller's time-out counts.
        headersTimeout: 0,
        bodyTimeout: 0,
      })
      const text = await answer.body.text()
      if (answer.statusCode !== 200) throw answerError(answer, text)
      return parsed(text)
    } catch (error) {
      throw toClientError(error)
    }
  }

  /** For one stream, to be destroyed when it is over. */
  streamClient(): Client {
    return new Client(this.#origin, { connect: this.#connect })
  }

  /** What a request for a stream begins with. */
  get streamRequest(): Dispatcher.RequestOptions & { readonly method: 'POST' } {
    return {
      method: 'POST',
      path: `${this.#pathPrefix}/v1/updates`,
      headers: { ...this.#headers, 'content-type': 'application/x-ndjson' },
      headersTimeout: 0,
      bodyTimeout: 0,
    }
  }

  /** For when no call is under way. Does not wait for connections that are just being made. */
  close(): Promise<void> {
    this.#closed ??= this.#pool.destroy()
    return this.#closed
  }
}

/** Whatever undici failed with. */
export function toClientError(error: unknown): PostboteClientError {
  if (error instanceof PostboteClientError) return error
  if (error instanceof Error && error.name === 'AbortError') {
    return new PostboteClientError('ABORTED', { cause: error })
  }
  return new PostboteClientError('CONNECTION_LOST', { cause: error })
}

/** Whatever fails until the connection is made, the handshake of TLS included, failed before anything was sent. */
function connector(options: buildConnector.BuildOptions): buildConnector.connector {
  const connect = buildConnector(options)
  return (to, callback) => {
    connect(to, (...[cause, socket]) => {
      if (cause === null) callback(null, socket)
      else callback(new PostboteClientError('CONNECTION_FAILED', { cause }), null)
    })
  }
}

function parsed(text: string): unknown {
  const answer = parsedOrUndefined(text)
  if (answer === undefined) throw new PostboteClientError('UNEXPECTED_ANSWER')
  return answer
}

function placeOf({ url, socketPath }: ServerConnectionOptions): {
  readonly origin: string
  readonly pathPrefix: string
} {
  if (socketPath !== undefined) {
    if (url !== undefined) throw new TypeError('url and socketPath: expected one of them')
    return { origin: 'http://localhost', pathPrefix: '' }
  }
  const place = String(url ?? 'http://127.0.0.1:8082')
  if (!URL.canParse(place)) throw new TypeError('url: expected one like http://127.0.0.1:8082')
  const { protocol, origin, pathname, search, hash, username, password } = new URL(place)
  const isPlain = `${search}${hash}${username}${password}` === ''
  if (!/^https?:$/.test(protocol) || !isPlain) {
    throw new TypeError('url: expected http or https, a host, and at most a port and a path')
  }
  return { origin, pathPrefix: pathname.replace(/\/+$/, '') }
}

/** The text is not shown: it may be most of a key. */
function keyIn(given: unknown): string {
  const key = typeof given === 'string' ? given.trim() : ''
  if (!/^[\x21-\x7e]+$/.test(key)) {
    throw new TypeError('key: expected the admin key, printable ASCII without blanks')
  }
  return key
}
