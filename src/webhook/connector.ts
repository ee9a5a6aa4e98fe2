/**
 * Opens connections to webhook endpoints: TCP to an address that was judged before, through an HTTP proxy
 * where one is set, and TLS on it where the URL asks for it. Verification and deliveries share it, so what
 * setWebhook accepted is what deliveries do.
 *
 * The name in the URL is used for SNI and for checking the certificate, never for a look-up.
 */

import { connect as connectTcp, isIP, type Socket } from 'node:net'
import {
  checkServerIdentity,
  connect as connectTls,
  createSecureContext,
  type SecureContext,
} from 'node:tls'
import type { Clock } from '../clock.ts'
import { webhookProxyAnswerBytesMax, webhookTcpKeepAliveMs } from '../limits.ts'
import type { Endpoint } from './endpoint.ts'
import { failureOf, WebhookFailure } from './failure.ts'

export interface ConnectTarget {
  readonly endpoint: Endpoint
  /** PEM: the only trust root instead of the usual ones. */
  readonly trust?: SecureContext | undefined
}

export interface ConnectRequest {
  readonly target: ConnectTarget
  readonly address: string
  readonly timeoutMs: number
  readonly signal: AbortSignal
}

/** Resolves to a socket that is ready for HTTP; rejects with a WebhookFailure and leaves nothing open. */
export type Connector = (request: ConnectRequest) => Promise<Socket>

/** `--proxy`. */
export interface Proxy {
  readonly host: string
  readonly port: number
  /** The value of the Proxy-Authorization header. A secret: never shown. */
  readonly authorization: string | undefined
}

/** Puts an endpoint and an uploaded certificate into the form the connector takes; costs a parse of the PEM. */
export function connectTarget(endpoint: Endpoint, certificate: string | undefined): ConnectTarget {
  if (certificate === undefined) return { endpoint }
  return {
    endpoint,
    // A leaf certificate that somebody else signed is a trust root as good as any, if that is what was uploaded.
    trust: createSecureContext({ ca: certificate, allowPartialTrustChain: true }),
  }
}

export function createConnector(options: {
  readonly clock: Clock
  readonly proxy?: Proxy | undefined
}): Connector {
  return (request) => openConnection(request, options.clock, options.proxy)
}

function openConnection(request: ConnectRequest, clock: Clock, proxy?: Proxy): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const { signal } = request
    const { endpoint } = request.target
    let socket: Socket = connectTcp(
      proxy === undefined
        ? { host: request.address, port: endpoint.port }
        : { host: proxy.host, port: proxy.port },
    )
    const timer = clock.after(request.timeoutMs, () =>
      fail(new WebhookFailure('Connection timed out', 'timed_out')),
    )
    signal.addEventListener('abort', onAbort, { once: true })
    if (signal.aborted) onAbort()
    socket.setNoDelay(true)
    socket.setKeepAlive(true, webhookTcpKeepAliveMs)
    socket.once('error', fail)
    socket.once('close', onClose)
    socket.once('connect', () => {
      if (proxy === undefined) startTls()
      else openTunnel(socket, request, proxy).then(startTls, fail)
    })

    function startTls(): void {
      if (!endpoint.secure) {
        succeed()
        return
      }
      const raw = socket
      raw.off('error', fail)
      raw.off('close', onClose)
      // Errors of the carrying socket arrive at the TLS socket too; here they only must not be unhandled.
      raw.on('error', ignore)
      socket = connectTls({
        socket: raw,
        ...(isIP(endpoint.host) === 0 ? { servername: endpoint.host } : {}),
        ALPNProtocols: ['http/1.1'],
        checkServerIdentity: (_name, certificate) =>
          checkServerIdentity(endpoint.host, certificate),
        ...(request.target.trust === undefined ? {} : { secureContext: request.target.trust }),
      })
      socket.once('error', fail)
      socket.once('close', onClose)
      socket.once('secureConnect', succeed)
    }

    function release(): void {
      timer.cancel()
      signal.removeEventListener('abort', onAbort)
      socket.off('error', fail)
      socket.off('close', onClose)
      socket.on('error', ignore)
    }
    function succeed(): void {
      release()
      resolve(socket)
    }
    function fail(error: unknown): void {
      release()
      socket.destroy()
      reject(failureOf(error))
    }
    function onAbort(): void {
      fail(new WebhookFailure('Connection aborted'))
    }
    function onClose(): void {
      fail(new WebhookFailure('Webhook connection closed'))
    }
  })
}

function ignore(): void {}

/** Asks the proxy for a tunnel to the judged address; resolves when it is there. */
function openTunnel(socket: Socket, request: ConnectRequest, proxy: Proxy): Promise<void> {
  const { address } = request
  const authority = `${isIP(address) === 6 ? `[${address}]` : address}:${request.target.endpoint.port}`
  const credentials =
    proxy.authorization === undefined ? '' : `Proxy-Authorization: ${proxy.authorization}\r\n`
  socket.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n${credentials}\r\n`)
  return new Promise((resolve, reject) => {
    let head = Buffer.alloc(0)
    socket.on('data', onData)
    function onData(chunk: Buffer): void {
      head = Buffer.concat([head, chunk])
      const end = head.indexOf('\r\n\r\n')
      if (end < 0 && head.length <= webhookProxyAnswerBytesMax) return
      socket.off('data', onData)
      socket.pause()
      const status = /^HTTP\/1\.[01] (\d{3})[^\r\n]*/.exec(head.toString('latin1'))
      if (end < 0 || status === null) {
        reject(new WebhookFailure('Proxy: wrong response'))
      } else if (status[1]?.startsWith('2') !== true) {
        reject(new WebhookFailure(`Proxy: wrong response ${status[0].slice(9)}`))
      } else if (head.length > end + 4) {
        // In HTTP and TLS the client speaks first.
        reject(new WebhookFailure('Proxy: wrong response'))
      } else {
        resolve()
      }
    }
  })
}
