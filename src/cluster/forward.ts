/**
 * One request on its way to the worker that owns its bot, and the answer on its way back.
 *
 *   reading -> sent -> relaying -> done
 *      |        |         +--> the owner dies: the client's connection is destroyed, half an answer is no answer
 *      |        +--> the owner dies before it answers: sent once more, to its successor, or refused
 *      +--> client gone at any point: the request to the owner is destroyed at once
 *
 * The body is read to its end before anything is sent. It is small (4 MiB at most, NDJSON goes another way),
 * it must be kept anyway so that it can be sent again, its length is known, and a client that is slow or
 * breaks off costs the owner nothing. Bodies pass as they are, gzip included.
 *
 * But what the owner only sends on to the upstream server may be any size and must not be sent twice: it is
 * streamed, and the owner's loss is the end of it.
 */
import {
  type Agent,
  type ClientRequest,
  type IncomingMessage,
  request,
  type ServerResponse,
} from 'node:http'
import type { Clock } from '../clock.ts'
import { PostboteError } from '../errors.ts'
import {
  forwardedBodyBytesMax,
  forwardHopsMax,
  peerConnectWaitMs,
  peerRepeatDelayMs,
} from '../limits.ts'
import { hasBody } from '../http/body.ts'
import { onceClosed } from '../http/once-closed.ts'
import { type RequestOrigin, requestOrigin } from './connection-origin.ts'
import { forwardedRequestHeaders, forwardedResponseHeaders } from './forward-headers.ts'
import type { ListenerKind } from './listener.ts'
import type { Log } from './log.ts'
import { PeerUnreachable } from './peer-agent.ts'
import { errorBody } from './raw-answer.ts'

export interface ForwardTo {
  readonly worker: number
  readonly kind: ListenerKind
  /** Which of the successive processes in that worker's place owns the bot now; undefined between two of them. */
  generation(): number | undefined
  /** Its body is passed on as it comes, and it is never sent again. */
  readonly isStreamed?: boolean
  /** On a connection of its own. */
  readonly isFresh?: boolean
}

export interface ForwardOptions {
  readonly incoming: IncomingMessage
  readonly response: ServerResponse
  readonly to: ForwardTo
  readonly socketPath: string
  readonly clock: Clock
  readonly agents: { readonly first: Agent; readonly again: Agent }
  readonly log: Log
}

const noBody = Buffer.alloc(0)

/** All own methods of the bot API are idempotent; of the private calls, reading. */
function isIdempotent({ kind, isStreamed }: ForwardTo, { method }: IncomingMessage): boolean {
  if (isStreamed === true) return false
  return kind === 'bot' || method === 'GET' || method === 'HEAD'
}

export class Forward {
  readonly #options: ForwardOptions
  readonly #origin: RequestOrigin
  #upstream: ClientRequest | undefined
  #unwatch: () => void = () => undefined
  readonly #firstGeneration: number | undefined
  #sentToGeneration: number | undefined
  #repeatUntilMs: number | undefined
  #isDone = false

  constructor(options: ForwardOptions) {
    const { incoming, to } = options
    this.#options = options
    this.#origin = requestOrigin(incoming) ?? { listener: to.kind, peerAddress: '', hops: 0 }
    this.#firstGeneration = to.generation()
  }

  start(): void {
    const { incoming, response, to } = this.#options
    this.#unwatch = onceClosed(incoming.socket, () => this.#finish())
    response.once('close', () => this.#finish())
    if (this.#origin.hops >= forwardHopsMax) this.#refuse('UNAVAILABLE')
    else if (hasBody(incoming) && to.isStreamed === true) this.#send(incoming)
    else if (hasBody(incoming)) this.#readBody()
    else this.#send(noBody)
  }

  #readBody(): void {
    const { incoming } = this.#options
    const chunks: Buffer[] = []
    let bytes = 0
    incoming.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes <= forwardedBodyBytesMax) chunks.push(chunk)
      else if (!this.#isDone) this.#refuseBody()
    })
    incoming.once('end', () => {
      const [first = noBody] = chunks
      this.#send(chunks.length <= 1 ? first : Buffer.concat(chunks, bytes))
    })
    incoming.once('error', () => this.#finish())
  }

  #send(body: Buffer | IncomingMessage): void {
    if (this.#isDone) return
    try {
      this.#request(body)
    } catch (cause) {
      // node:http is stricter in what it sends than in what it accepts.
      this.#answer(
        new PostboteError('BAD_REQUEST', { detail: 'this request cannot be forwarded', cause }),
      )
    }
  }

  #request(body: Buffer | IncomingMessage): void {
    const { incoming, socketPath, agents, to } = this.#options
    const { method = 'GET', url = '/', rawHeaders } = incoming
    const bodyBytes = Buffer.isBuffer(body) ? body.length : declaredBytes(body)
    const upstream = request({
      agent: this.#upstream === undefined ? agents.first : agents.again,
      socketPath,
      method,
      path: url,
      headers: forwardedRequestHeaders({ method, rawHeaders, origin: this.#origin, bodyBytes }),
    })
    this.#upstream = upstream
    this.#sentToGeneration = to.generation()
    upstream.once('response', (answer) => this.#relay(answer))
    upstream.on('error', (error) => this.#lost(error, body))
    if (Buffer.isBuffer(body)) upstream.end(body)
    else body.pipe(upstream)
  }

  #relay(answer: IncomingMessage): void {
    const { response, to } = this.#options
    if (this.#isDone) return
    const { statusCode = 502, statusMessage = '', rawHeaders } = answer
    response.writeHead(statusCode, statusMessage, forwardedResponseHeaders(rawHeaders, to))
    // Its turn may come after earlier pipelined answers; destroying it waits for that.
    answer.once('error', () => response.destroy())
    answer.pipe(response)
  }

  #lost(error: Error, body: Buffer | IncomingMessage): void {
    if (this.#isDone || this.#options.response.headersSent) return
    if (error instanceof PeerUnreachable) {
      this.#refuse('UNAVAILABLE')
    } else if (this.#mayRepeat()) {
      // `#send` does nothing where the client has left meanwhile.
      this.#options.clock.after(peerRepeatDelayMs, () => this.#send(body))
    } else if (this.#options.to.isStreamed === true) {
      const detail = 'may have got the request, but its answer was lost with a worker'
      this.#answer(new PostboteError('UPSTREAM_FAILED', { detail, cause: error }))
    } else {
      this.#refuse('OUTCOME_UNKNOWN')
    }
  }

  /**
   * Once on the successor, since what has ended two processes must not end a third. A killed process still takes
   * connections while the kernel takes it apart, and resets them: a repetition that met it does not count.
   */
  #mayRepeat(): boolean {
    const { to, incoming, clock } = this.#options
    if (!isIdempotent(to, incoming) || this.#sentToGeneration !== this.#firstGeneration)
      return false
    const nowMs = clock.monotonicMs()
    this.#repeatUntilMs ??= nowMs + peerConnectWaitMs
    return nowMs < this.#repeatUntilMs
  }

  /** `UNAVAILABLE` where nothing happened, or where it may be asked again without harm. */
  #refuse(code: 'UNAVAILABLE' | 'OUTCOME_UNKNOWN'): void {
    const { to, incoming, log } = this.#options
    const isSafe = to.kind === 'bot' || incoming.method === 'GET' || incoming.method === 'HEAD'
    const certain = to.kind === 'bot' ? 'UNAVAILABLE' : 'STORE_UNAVAILABLE'
    log.warn({ worker: to.worker, code }, 'a request could not be forwarded to its owner')
    this.#answer(new PostboteError(isSafe || code === 'UNAVAILABLE' ? certain : code))
  }

  #refuseBody(): void {
    const isBot = this.#options.to.kind === 'bot'
    this.#options.response.shouldKeepAlive = false
    const detail = `at most ${forwardedBodyBytesMax} bytes are accepted`
    this.#answer(new PostboteError(isBot ? 'REQUEST_TOO_LARGE' : 'UPDATE_TOO_LARGE', { detail }))
  }

  #answer(error: PostboteError): void {
    const { to, response } = this.#options
    const body = errorBody(to.kind, error)
    const headers = {
      'Content-Type': 'application/json',
      'Content-Length': Buffer.byteLength(body),
    }
    response.writeHead(error.status, headers).end(body)
    this.#finish()
  }

  /** The answer is out or the client is gone: whatever is still under way at the owner is cut off. */
  #finish(): void {
    if (this.#isDone) return
    this.#isDone = true
    this.#unwatch()
    const { incoming, response } = this.#options
    const upstream = this.#upstream
    if (upstream === undefined) return
    if (!response.writableFinished) {
      upstream.destroy()
    } else if (!upstream.writableEnded) {
      // Answered before all of it had come. The rest is thrown away, so that the next request can be read.
      incoming.unpipe(upstream)
      incoming.resume()
      upstream.destroy()
    }
  }
}

function declaredBytes({ headers }: IncomingMessage): number | undefined {
  const length = headers['content-length']
  return length === undefined ? undefined : Number(length)
}
