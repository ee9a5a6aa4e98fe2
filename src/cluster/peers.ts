/**
 * The way to the other workers: requests for bots they own, as HTTP over their Unix sockets.
 *
 * One request a connection at a time: so the connection is the request's. Its destruction frees a long
 * poll at the owner, and back-pressure is the socket's. Comlink was measured for this and rejected
 * (ARCHITECTURE 4).
 */
import { type ClientRequest, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { OwnerStream } from '../admin/owner-links.ts'
import type { Clock } from '../clock.ts'
import { PostboteError } from '../errors.ts'
import { hopsHeader, peerAddressHeader } from './connection-origin.ts'
import { Forward, type ForwardTo } from './forward.ts'
import { listenerKinds } from './listener.ts'
import type { Log } from './log.ts'
import { PeerAgent, PeerUnreachable } from './peer-agent.ts'
import { peerSocketPath } from './worker-servers.ts'

export interface PeersOptions {
  readonly clock: Clock
  readonly log: Log
  readonly runDir: string
}

export interface StreamTo {
  readonly worker: number
  readonly path: string
  /** The original client, as `requestOrigin` gave it. */
  readonly peerAddress: string
  readonly headers: Readonly<Record<string, string>>
}

export class Peers {
  readonly #options: PeersOptions
  readonly #kept: PeerAgent
  readonly #fresh: PeerAgent

  constructor(options: PeersOptions) {
    this.#options = options
    this.#kept = new PeerAgent({ clock: options.clock, keepAlive: true })
    this.#fresh = new PeerAgent({ clock: options.clock, keepAlive: false })
  }

  /** Has another worker answer this request. Answers by itself in every case and never throws. */
  forward(incoming: IncomingMessage, response: ServerResponse, to: ForwardTo): void {
    const { clock, log, runDir } = this.#options
    const socketPath = peerSocketPath({ runDir, worker: to.worker, kind: to.kind })
    // The second attempt is on a new connection: the kept ones lead to the process that was just lost.
    const first = to.isFresh === true ? this.#fresh : this.#kept
    const agents = { first, again: this.#fresh }
    new Forward({ incoming, response, to, socketPath, agents, clock, log }).start()
  }

  /** Its answer may flow while the request still does. */
  openStream({ worker, path, peerAddress, headers }: StreamTo): OwnerStream {
    const stream = request({
      agent: this.#fresh,
      socketPath: peerSocketPath({ runDir: this.#options.runDir, worker, kind: 'private' }),
      method: 'POST',
      path,
      headers: {
        ...headers,
        [peerAddressHeader]: peerAddress,
        [hopsHeader]: '1',
        'Transfer-Encoding': 'chunked',
      },
    })
    stream.flushHeaders()
    const response = responseOf(stream)
    response.catch(() => undefined) // Whoever only writes need not look at it.
    return {
      response,
      write: (chunk) => stream.write(chunk),
      drained: () => drained(stream),
      end: () => void stream.end(),
      destroy: () => void stream.destroy(),
    }
  }

  /** Another process has taken over: idle connections to this place lead to the one that ends. */
  forget(worker: number): void {
    const { runDir } = this.#options
    this.#kept.closeIdle(listenerKinds.map((kind) => peerSocketPath({ runDir, worker, kind })))
  }

  close(): void {
    this.#kept.destroy()
    this.#fresh.destroy()
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
