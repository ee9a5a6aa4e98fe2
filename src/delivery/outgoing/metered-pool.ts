/**
 * A pool of connections to one server whose answers are bounded (answer-meter.ts): of undici, which bounds neither the pieces
 * of a body nor interim responses nor framing. Answers are passed on as they arrive, so one of any size may be streamed.
 *
 * Each connection is a client of its own, because only its client knows its socket, where the framing is counted.
 */
import type { Socket } from 'node:net'
import { type buildConnector, Client, type Dispatcher, Pool } from 'undici'
import { AnswerHead, readThrough } from './answer-head.ts'
import { AnswerMeter, notHttp, onlyHttp2, tooManyInterim } from './answer-meter.ts'

export interface MeteredPoolOptions
  extends Pick<Pool.Options, 'bodyTimeout' | 'connect' | 'headersTimeout'> {
  /** The maximum number of connections, each with one request at a time; null for any number. */
  readonly connections: number | null
}

export function meteredPool(origin: string, options: MeteredPoolOptions): Pool {
  return new Pool(origin, { ...options, pipelining: 1, factory: meteredClient })
}

function meteredClient(origin: URL, options: object): Dispatcher {
  // The pool makes a function of whatever it was given.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const { connect, ...others } = options as Client.Options & { connect: buildConnector.connector }
  const watch = new SocketWatch()
  const client = new Client(origin, {
    ...others,
    connect: (target, done) => {
      connect(target, (...[error, socket]) => {
        if (error === null) {
          watch.use(socket)
          done(null, socket)
        } else done(error, null)
      })
    },
  })
  return client.compose(
    (dispatch) => (request, handler) => dispatch(request, new MeteredHandler(handler, watch)),
  )
}

/** Counts what the socket of a client receives during an answer, and keeps interim responses from undici, which refuses some. */
class SocketWatch {
  readonly meter = new AnswerMeter()
  readonly head = new AnswerHead()
  #socket: Socket | undefined
  #controller: Dispatcher.DispatchController | undefined

  use(socket: Socket): void {
    this.#socket = socket
    readThrough(this.head, socket)
    socket.on('readable', () => this.#count())
  }

  begin(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    this.head.reset()
    this.head.begin()
    this.meter.begin(this.#socket?.bytesRead ?? 0)
  }

  end(): void {
    this.#controller = undefined
    this.head.end()
  }

  #count(): void {
    if (this.#controller === undefined) return
    const refused = this.head.hasTooManyInterim
      ? tooManyInterim
      : this.meter.framingOf(this.#socket?.bytesRead ?? 0)
    if (refused !== undefined) this.#controller.abort(refused)
  }
}

class MeteredHandler implements Dispatcher.DispatchHandler {
  readonly #handler: Dispatcher.DispatchHandler
  readonly #watch: SocketWatch

  constructor(handler: Dispatcher.DispatchHandler, watch: SocketWatch) {
    this.#handler = handler
    this.#watch = watch
  }

  onRequestStart(controller: Dispatcher.DispatchController, context: unknown): void {
    this.#watch.begin(controller)
    this.#handler.onRequestStart?.(controller, context)
  }

  onResponseStart(
    ...response: Parameters<Required<Dispatcher.DispatchHandler>['onResponseStart']>
  ): void {
    const [controller, status, headers] = response
    const { head } = this.#watch
    // undici's parser also reads answers of other protocols, such as `RTSP/1.0 200 OK`.
    if (status !== head.status) return controller.abort(notHttp)
    head.endHeaders(headers)
    this.#handler.onResponseStart?.(...response)
  }

  onResponseData(controller: Dispatcher.DispatchController, piece: Buffer): void {
    const refused = this.#watch.meter.addPiece(piece.length)
    if (refused === undefined) this.#handler.onResponseData?.(controller, piece)
    else controller.abort(refused)
  }

  onResponseEnd(...end: Parameters<Required<Dispatcher.DispatchHandler>['onResponseEnd']>): void {
    this.#watch.end()
    this.#handler.onResponseEnd?.(...end)
  }

  onResponseError(controller: Dispatcher.DispatchController, error: Error): void {
    const { isHttp2 } = this.#watch.head
    this.#watch.end()
    this.#handler.onResponseError?.(controller, isHttp2 ? onlyHttp2 : error)
  }
}
