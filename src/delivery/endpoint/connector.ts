/**
 * Opens connections to webhook endpoints: TCP to an address that was judged before, through an HTTP proxy if one is set,
 * and TLS on top if the URL asks for it. Verification and deliveries share this code, so deliveries behave as setWebhook
 * has verified.
 *
 *     TCP --(proxy: CONNECT)--> (https: TLS) --> ready
 *
 * The name in the URL is used for SNI and for checking the certificate, never for a look-up. A webhook's TLS sessions are
 * kept with its target and resumed, so a new connection needs no full handshake. OpenSSL does not check certificates
 * again on resumption, so a session must never reach another host name or trust root.
 */
import { X509Certificate } from 'node:crypto'
import { connect as connectTcp, isIP, type Socket } from 'node:net'
import {
  checkServerIdentity,
  connect as connectTls,
  type PeerCertificate,
  type SecureContext,
  type TLSSocket,
} from 'node:tls'
import type { Clock } from '../../kit/clock.ts'
import type { Proxy } from '../../http/server-origin.ts'
import { webhookAddressesMax } from '../limits.ts'
import { statusWords } from '../attempts/classify-response.ts'
import type { Endpoint } from './endpoint.ts'
import { PerTurn } from '../../kit/per-turn.ts'
import { failureOf, proxyFailureOf, tlsFailureOf, WebhookFailure } from '../attempts/failure.ts'
import { tlsContext } from './tls-context.ts'
import { kib } from '../../kit/limits.ts'
import { setLast } from '../../kit/set-last.ts'

/** What a webhook connects to. It belongs to one webhook and to one setting of it. */
export interface ConnectTarget {
  readonly endpoint: Endpoint
  /** The uploaded certificate, which replaces the usual trust roots. */
  readonly trust?: SecureContext | undefined
  /** The last TLS session with each address. */
  readonly sessions: Map<string, Buffer>
}

export interface ConnectRequest {
  readonly target: ConnectTarget
  readonly address: string
  readonly timeoutMs: number
  readonly signal: AbortSignal
  readonly watch?: ConnectWatch | undefined
}

/** Learns how far an opening has come. */
export interface ConnectWatch {
  /** The endpoint is connected, through the proxy if there is one. */
  onTransport(): void
  /** The endpoint has shown its certificate, which nothing has judged yet. */
  onCertificate(socket: TLSSocket): void
}

/** Resolves to a socket that is ready for HTTP. Rejects with a WebhookFailure and leaves nothing open. */
export type Connector = (request: ConnectRequest) => Promise<Socket>

/** Creates the target of a webhook. Parses the PEM of the uploaded certificate. */
export function connectTarget(endpoint: Endpoint, certificate: string | undefined): ConnectTarget {
  const sessions = new Map<string, Buffer>()
  if (certificate === undefined) return { endpoint, sessions }
  return {
    endpoint,
    sessions,
    // An uploaded leaf certificate is a valid trust root even if another authority has signed it.
    trust: tlsContext({ ca: certificate, allowPartialTrustChain: true }),
  }
}

/** A worker begins this many connections to webhooks in one turn of the event loop: some 5 ms with the work that follows. */
const webhookOpeningsPerTurn = 8

/**
 * Creates the connector of a worker.
 *
 * @param trustRoots - the trust roots for webhooks without an uploaded certificate, in PEM, read on first use; Node's own list by
 *   default
 */
export function createConnector(
  clock: Clock,
  proxy?: Proxy,
  trustRoots?: () => readonly string[],
): Connector {
  let usual: SecureContext | undefined
  // All connections share this context, because building one takes longer than a handshake.
  const usualTrust = (): SecureContext =>
    (usual ??= tlsContext(trustRoots === undefined ? {} : { ca: [...trustRoots()] }))
  // Opening a connection takes 0.3 ms and more, and as much again once it is open. At a start with the webhooks of 1,000
  // bots, hundreds of openings in one turn held up everything else in the worker for a quarter of a second.
  const turns = new PerTurn(webhookOpeningsPerTurn, (end) => clock.soon(end))
  return async (request) => {
    await turns.next()
    return openConnection(request, { clock, proxy, usualTrust })
  }
}

interface Means {
  readonly clock: Clock
  readonly proxy: Proxy | undefined
  readonly usualTrust: () => SecureContext
}

/**
 * TCP checks after this silence whether an endpoint is still there, so that a machine that has vanished does not hold a
 * connection until the response times out. Chosen: as long as a response may take.
 */
const webhookTcpKeepAliveMs = 60_000

const timedOut = 'Connection timed out'
const silentProxy =
  'no response to CONNECT in time: the proxy, or the endpoint behind it, is silent'

function openConnection(request: ConnectRequest, means: Means): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const { signal, target } = request
    const { clock, proxy } = means
    let socket: Socket = connectTcp(
      proxy === undefined
        ? { host: request.address, port: target.endpoint.port }
        : { host: proxy.host, port: proxy.port },
    )
    /** Translates an error according to the stage at which it occurred. */
    let explain = proxy === undefined ? failureOf : proxyFailureOf
    let late = timedOut
    const timer = clock.after(request.timeoutMs, () => fail(new WebhookFailure(late, 'timed_out')))
    signal.addEventListener('abort', onAbort, { once: true })
    if (signal.aborted) onAbort()
    socket.setNoDelay(true)
    socket.setKeepAlive(true, webhookTcpKeepAliveMs)
    socket.once('error', fail)
    socket.once('close', onClose)
    socket.once('connect', () => {
      if (proxy !== undefined) late = silentProxy
      if (proxy === undefined) onTransport()
      else openTunnel(socket, request, proxy).then(onTransport, fail)
    })

    function onTransport(): void {
      late = timedOut
      request.watch?.onTransport()
      if (!target.endpoint.secure) {
        succeed()
        return
      }
      const raw = socket
      raw.off('error', fail)
      raw.off('close', onClose)
      // Errors of the underlying socket reach the TLS socket, too. This listener only keeps them from being unhandled.
      raw.on('error', ignore)
      explain = (error) => {
        // The other side may have failed because of the resumed session.
        target.sessions.delete(request.address)
        return tlsFailureOf(error)
      }
      socket = startTls(raw, request, means)
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
      reject(explain(error))
    }
    function onAbort(): void {
      fail(new WebhookFailure('Connection aborted'))
    }
    function onClose(): void {
      fail(new WebhookFailure('Connection closed'))
    }
  })
}

function ignore(): void {}

/**
 * A connection may receive this many tickets for resumption. Servers send about two; each costs 50 us or more here, and a
 * few bytes to send.
 */
export const webhookTlsSessionsMax = 16
/**
 * A larger session is not kept, because up to `webhookAddressesMax` of them stay with each webhook. A ticket contains
 * certificates at the most.
 */
export const webhookTlsSessionBytesMax = 16 * kib

function startTls(
  raw: Socket,
  { target, address, watch }: ConnectRequest,
  { usualTrust, clock }: Means,
): TLSSocket {
  const { endpoint, sessions } = target
  const session = sessions.get(address)
  const socket = connectTls({
    socket: raw,
    // SNI allows neither addresses nor a dot at the end of a name.
    ...(endpoint.hostIsAddress ? {} : { servername: endpoint.host.replace(/\.$/, '') }),
    ALPNProtocols: ['http/1.1'],
    checkServerIdentity: (_name, certificate) => checkIdentity(target, certificate),
    secureContext: target.trust ?? usualTrust(),
    ...(session === undefined ? {} : { session }),
  })
  // Node judges the certificate when this event arrives, and then forgets one that is refused.
  if (watch !== undefined) socket.prependListener('secure', () => watch.onCertificate(socket))
  let sessionsSent = 0
  socket.on('session', (latest) => {
    sessionsSent++
    // The socket must be destroyed later, because OpenSSL is using it now.
    if (sessionsSent === webhookTlsSessionsMax + 1) {
      clock.soon(() => socket.destroy(new WebhookFailure('TLS: too many sessions', 'tls_failed')))
    }
    if (sessionsSent > webhookTlsSessionsMax || latest.length > webhookTlsSessionBytesMax) return
    const oldest = setLast(sessions, [address, latest], webhookAddressesMax)
    if (oldest !== undefined) sessions.delete(oldest)
  })
  return socket
}

/**
 * Checks the certificate's name. An uploaded certificate may carry an address in the form of a host name: popular guides
 * create certificates with the address as common name, and the reference server accepts them.
 */
function checkIdentity(target: ConnectTarget, certificate: PeerCertificate): Error | undefined {
  const { host, hostIsAddress } = target.endpoint
  const error = checkServerIdentity(host, certificate)
  if (error === undefined || target.trust === undefined || !hostIsAddress) return error
  const name = new X509Certificate(certificate.raw).checkHost(host)
  return name === undefined ? error : undefined
}

/** A proxy's response to CONNECT may have this many bytes, far more than the status line and few headers of a usual one. */
const webhookProxyResponseBytesMax = 16 * kib

/** Asks the proxy for a tunnel to the judged address. Resolves when the tunnel is open. */
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
      if (end < 0 && head.length <= webhookProxyResponseBytesMax) return
      socket.off('data', onData)
      socket.pause()
      const status = /^HTTP\/1\.[01] (\d{3})\b/.exec(head.toString('latin1'))
      if (end < 0 || status === null) {
        reject(new WebhookFailure('wrong response'))
      } else if (status[1]?.startsWith('2') !== true) {
        reject(new WebhookFailure(`wrong response ${statusWords(Number(status[1]))}`))
      } else if (head.length > end + 4) {
        // In HTTP and TLS the client speaks first, so these bytes do not come from the endpoint.
        reject(new WebhookFailure('wrong response'))
      } else {
        resolve()
      }
    }
  })
}
