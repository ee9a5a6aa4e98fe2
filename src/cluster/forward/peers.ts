/**
 * The way to the other workers: requests for bots that they own, as HTTP over their Unix sockets.
 *
 * A connection carries one request at a time, so it belongs to that request: its destruction frees a long poll at the
 * owner, and back-pressure is that of the socket. Whole requests use our own connections (peer-pool.ts), streamed ones
 * those of node:http (peer-agent.ts). Rejected: Comlink, which was slower.
 */
import { type ClientRequest, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { OwnerStream } from '../../private-api/owner-links.ts'
import type { Clock } from '../../clock.ts'
import { PostboteError } from '../../errors.ts'
import { forwardHopsMax, peerRepeatDelayMs } from '../limits.ts'
import { PeerUnreachable } from './connect-to-peer.ts'
import { hopsHeader, clientAddressHeader, requestOrigin } from '../connection/connection-origin.ts'
import { ForwardedExchange, type ForwardTo } from './forwarded-exchange.ts'
import { Forward } from './forward.ts'
import { listenerKinds } from '../listener.ts'
import type { Log } from '../log.ts'
import { PeerAgent } from './peer-agent.ts'
import { PeerPool } from './peer-pool.ts'
import { StreamedForward } from './streamed-forward.ts'
import { peerSocketPath } from './peer-socket-path.ts'

export interface PeersOptions {
  readonly clock: Clock
  readonly log: Log
  readonly runDir: string
}

export interface StreamTo {
  readonly worker: number
  readonly path: string
  /** The address of the original client, as `requestOrigin` returned it. */
  readonly clientAddress: string
  readonly headers: Readonly<Record<string, string>>
  /** The worker was lost a moment ago. */
  readonly isRepeat?: boolean | undefined
}

export class Peers {
  readonly #options: PeersOptions
  readonly #pool: PeerPool
  readonly #kept: PeerAgent
  readonly #fresh: PeerAgent
  readonly #later: PeerAgent

  constructor(options: PeersOptions) {
    this.#options = options
    this.#pool = new PeerPool(options.clock)
    this.#kept = new PeerAgent({ clock: options.clock, keepAlive: true })
    const { clock } = options
    this.#fresh = new PeerAgent({ clock, keepAlive: false })
    this.#later = new PeerAgent({ clock, keepAlive: false, delayMs: peerRepeatDelayMs })
  }

  /** Has another worker answer this request. The client gets a response in every case, and this never throws. */
  forward(incoming: IncomingMessage, response: ServerResponse, to: ForwardTo): void {
    const { clock, log, runDir } = this.#options
    const socketPath = peerSocketPath({ runDir, worker: to.worker, kind: to.kind })
    const exchange = new ForwardedExchange({ incoming, response, to, log })
    const origin = requestOrigin(incoming) ?? { listener: to.kind, clientAddress: '', hops: 0 }
    if (to.isStreamed === true && origin.hops < forwardHopsMax) {
      const agent = to.isFresh === true ? this.#fresh : this.#kept
      new StreamedForward({ exchange, origin, socketPath, agent }).start()
    } else {
      new Forward({ exchange, origin, socketPath, clock, pool: this.#pool }).start()
    }
  }

  /** Opens a request whose response may arrive while the request is still being sent. */
  openStream({ worker, path, clientAddress, headers, isRepeat }: StreamTo): OwnerStream {
    const stream = request({
      agent: isRepeat === true ? this.#later : this.#fresh,
      socketPath: peerSocketPath({ runDir: this.#options.runDir, worker, kind: 'private' }),
      method: 'POST',
      path,
      headers: {
        ...headers,
        [clientAddressHeader]: clientAddress,
        [hopsHeader]: '1',
        'Transfer-Encoding': 'chunked',
      },
    })
    stream.flushHeaders()
    const response = responseOf(stream)
    response.catch(() => undefined) // A caller that only writes does not await `response`.
    return {
      response,
      write: (chunk) => stream.write(chunk),
      drained: () => drained(stream),
      end: () => void stream.end(),
      destroy: () => void stream.destroy(),
    }
  }

  /** Another process serves this place now: idle connections lead to the old one, so they are closed. */
  forget(worker: number): void {
    const { runDir } = this.#options
    const paths = listenerKinds.map((kind) => peerSocketPath({ runDir, worker, kind }))
    this.#pool.closeIdle(paths)
    this.#kept.closeIdle(paths)
  }

  close(): void {
    this.#pool.close()
    this.#kept.destroy()
    this.#fresh.destroy()
    this.#later.destroy()
  }
}

function responseOf(stream: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    stream.once('response', resolve)
    stream.on('error', (cause) => {
      const code = cause instanceof PeerUnreachable ? 'STORE_UNAVAILABLE' : 'OUTCOME_UNKNOWN'
      reject(new PostboteError(code, { cause }))
    })
  })
}

function drained(stream: ClientRequest): Promise<void> {
  if (stream.destroyed || !stream.writableNeedDrain) return Promise.resolve()
  return new Promise((resolve) => {
    const finish = (): void => {
      stream.off('drain', finish)
      stream.off('close', finish)
      resolve()
    }
    stream.once('drain', finish)
    stream.once('close', finish)
  })
}
