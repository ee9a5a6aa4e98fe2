/**
 * Decides who may use the private API: a client with the admin key or a key that was made with it (access/), or a browser
 * with a session (session-cookie.ts), whose Host header no web page can rebind. What a key may do is decided later, by
 * the route (route-needs.ts).
 *
 * A browser that a rebound DNS name led here sends that name as its Host. An IP address, localhost or a name that the
 * operator listed cannot be rebound. Browsers cannot reach a Unix socket.
 *
 * A browser adds the cookie of a session to requests of other pages of the same host name, too. Such a page cannot read
 * responses, and it cannot add a header without asking first (CORS), which nothing here allows. So a request that has only
 * a cookie needs that header if it may change something.
 */
import { timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import type { Access } from '../access/access.ts'
import { accessKeyHash, parseAccessKey } from '../access/access-key.ts'
import { KeyRing } from '../access/key-ring.ts'
import type { Clock } from '../clock.ts'
import { PostboteError } from '../errors.ts'
import { SessionCookie, type SessionCookieOptions } from './session-cookie.ts'

export interface PrivateApiGuardOptions extends SessionCookieOptions {
  /** The names of `--admin-host`, in lower case. */
  readonly hosts: readonly string[]
  readonly clock: Clock
}

/** What the guard looks at. */
export type GuardedRequest = Pick<IncomingMessage, 'method' | 'headers'>

/** The header that the dashboard adds to each request; any value will do. */
export const dashboardHeader = 'postbote-dashboard'

/** `unknown` if the keys of the server are not known yet; undefined if the request has no valid key and no session. */
type Found = Access | 'unknown' | undefined

export class PrivateApiGuard {
  readonly sessions: SessionCookie
  /** All keys but the admin key. */
  readonly ring: KeyRing
  readonly #keyHash: Buffer
  readonly #hosts: ReadonlySet<string>

  constructor(options: PrivateApiGuardOptions) {
    this.#keyHash = accessKeyHash(options.adminKey)
    this.ring = new KeyRing(options.clock)
    this.#hosts = new Set(['localhost', ...options.hosts.map((host) => host.toLowerCase())])
    this.sessions = new SessionCookie(options)
  }

  /** Throws BAD_HOST if the Host header is missing or not allowed. */
  checkHost(host: string | undefined): void {
    const name = hostNameOf(host ?? '')
    if (isIP(name) === 0 && !this.#hosts.has(name)) throw new PostboteError('BAD_HOST')
  }

  /**
   * Checks that a request has a valid key or a session.
   *
   * @returns what its sender may do
   * @throws UNAUTHORIZED if it has neither, or a wrong key; KEYS_UNAVAILABLE if that cannot be decided yet;
   *   CROSS_SITE_REQUEST if it has a session, may change something, and lacks the header of the dashboard
   */
  checkAccess(request: GuardedRequest): Access {
    const { method, headers } = request
    const access = granted(this.#accessOf(request))
    if (headers.authorization !== undefined) return access
    if (method === 'GET' || method === 'HEAD' || headers[dashboardHeader] !== undefined) {
      return access
    }
    throw new PostboteError('CROSS_SITE_REQUEST')
  }

  /**
   * Checks the key in an Authorization header. A session does not count.
   *
   * @throws UNAUTHORIZED, KEYS_UNAVAILABLE
   */
  checkKey(authorization: string | undefined): Access {
    return granted(this.#ofKey(authorization))
  }

  /** Returns whether the request has a valid key or a session, whatever it wants. */
  isKnown(request: GuardedRequest): boolean {
    const found = this.#accessOf(request)
    return found !== undefined && found !== 'unknown'
  }

  /** A request with a wrong key is refused, even if it has a session, because its sender relies on the key. */
  #accessOf({ headers }: GuardedRequest): Found {
    if (headers.authorization !== undefined) return this.#ofKey(headers.authorization)
    const holder = this.sessions.holderOf(headers.cookie)
    if (holder === undefined || holder === 'root') return holder
    if (!this.ring.isKnown) return 'unknown'
    return this.ring.ofSession(holder.id, holder.secretTag)
  }

  #ofKey(authorization: string | undefined): Found {
    const text = /^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1]
    if (text === undefined) return undefined
    const key = parseAccessKey(text)
    const access = key && this.ring.find(key)
    if (access !== undefined) return access
    // An operator may have chosen an admin key that looks like another one.
    // Hashed first, so that keys of different lengths are compared in constant time.
    if (timingSafeEqual(accessKeyHash(text), this.#keyHash)) return 'root'
    return key === undefined || this.ring.isKnown ? undefined : 'unknown'
  }
}

function granted(found: Found): Access {
  if (found === 'unknown') throw new PostboteError('KEYS_UNAVAILABLE')
  if (found === undefined) throw new PostboteError('UNAUTHORIZED')
  return found
}

/** Returns the name in a Host header in lower case, without port, brackets and trailing dot. */
function hostNameOf(host: string): string {
  const bracketed = /^\[([^\]]*)\](?::\d*)?$/.exec(host)?.[1]
  if (bracketed !== undefined) return bracketed
  return host.replace(/:\d*$/, '').replace(/\.$/, '').toLowerCase()
}
