/**
 * Decides who may use the private API: a client with the admin key, or a browser with a session (session-cookie.ts), whose
 * Host header no web page can rebind.
 *
 * A browser that a rebound DNS name led here sends that name as its Host. An IP address, localhost or a name that the
 * operator listed cannot be rebound. Browsers cannot reach a Unix socket.
 *
 * A browser adds the cookie of a session to requests of other pages of the same host name, too. Such a page cannot read
 * responses, and it cannot add a header without asking first (CORS), which nothing here allows. So a request that has only
 * a cookie needs that header if it may change something.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import { PostboteError } from '../errors.ts'
import { SessionCookie, type SessionCookieOptions } from './session-cookie.ts'

export interface AdminGuardOptions extends SessionCookieOptions {
  /** The names of `--admin-host`, in lower case. */
  readonly hosts: readonly string[]
}

/** What the guard looks at. */
export type GuardedRequest = Pick<IncomingMessage, 'method' | 'headers'>

/** The header that the dashboard adds to each request; any value will do. */
export const dashboardHeader = 'postbote-dashboard'

export class PrivateApiGuard {
  readonly sessions: SessionCookie
  readonly #keyHash: Buffer
  readonly #hosts: ReadonlySet<string>

  constructor(options: AdminGuardOptions) {
    this.#keyHash = hashOf(options.adminKey)
    this.#hosts = new Set(['localhost', ...options.hosts.map((host) => host.toLowerCase())])
    this.sessions = new SessionCookie(options)
  }

  /** Throws BAD_HOST if the Host header is missing or not allowed. */
  checkHost(host: string | undefined): void {
    const name = hostNameOf(host ?? '')
    if (isIP(name) === 0 && !this.#hosts.has(name)) throw new PostboteError('BAD_HOST')
  }

  /**
   * Checks that a request has the admin key or a session.
   *
   * @throws UNAUTHORIZED if it has neither, or a wrong key; CROSS_SITE_REQUEST if it has a session, may change something,
   *   and lacks the header of the dashboard
   */
  checkAccess(request: GuardedRequest): void {
    const { method, headers } = request
    if (this.hasKey(headers.authorization)) return
    if (!this.#hasSession(request)) throw new PostboteError('UNAUTHORIZED')
    if (method === 'GET' || method === 'HEAD' || headers[dashboardHeader] !== undefined) return
    throw new PostboteError('CROSS_SITE_REQUEST')
  }

  /** Throws UNAUTHORIZED if the Authorization header does not have the admin key. A session does not count. */
  checkKey(authorization: string | undefined): void {
    if (!this.hasKey(authorization)) throw new PostboteError('UNAUTHORIZED')
  }

  /** Returns whether the request has the admin key or a session, whatever it wants. */
  isKnown(request: GuardedRequest): boolean {
    return this.hasKey(request.headers.authorization) || this.#hasSession(request)
  }

  hasKey(authorization: string | undefined): boolean {
    const key = /^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1]
    return key !== undefined && timingSafeEqual(hashOf(key), this.#keyHash)
  }

  /** A request with a wrong key is refused, even if it has a session, because its sender relies on the key. */
  #hasSession({ headers }: GuardedRequest): boolean {
    return headers.authorization === undefined && this.sessions.isValid(headers.cookie)
  }
}

/** Returns the name in a Host header in lower case, without port, brackets and trailing dot. */
function hostNameOf(host: string): string {
  const bracketed = /^\[([^\]]*)\](?::\d*)?$/.exec(host)?.[1]
  if (bracketed !== undefined) return bracketed
  return host.replace(/:\d*$/, '').replace(/\.$/, '').toLowerCase()
}

/** Keys are hashed first, so that keys of different lengths are compared in constant time. */
function hashOf(key: string): Buffer {
  return createHash('sha256').update(key).digest()
}
