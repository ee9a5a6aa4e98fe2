/**
 * Decides who may use the private API: a client with the admin key or a key that was made with it (access/), or a browser
 * with a session (session-cookie.ts), whose Host header no web page can rebind. What a key may do is decided later, by
 * the route (assert-may.ts).
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
import { type Access, familyIdOf } from '../api/access.ts'
import { accessKeyHash, parseAccessKey } from './access-key.ts'
import { EndedSessions, sessionSlotOf } from '../process/ended-sessions.ts'
import { AccessKeyRing } from './access-key-ring.ts'
import type { Clock } from '../kit/clock.ts'
import { PostboteError } from '../kit/errors.ts'
import { SessionCookie } from './session-cookie.ts'

export interface PrivateApiGuardOptions {
  readonly adminKey: string
  /** The names of `--admin-host`, in lower case. */
  readonly hosts: readonly string[]
  readonly clock: Clock
  /** Those of all processes of the server; by default of this one. */
  readonly endedSessions?: EndedSessions
}

const foundMark = Symbol('access found')

/** What the guard looks at. What it has found is kept with the request, which several callers ask for. */
export type GuardedRequest = Pick<IncomingMessage, 'method' | 'headers'> & {
  [foundMark]?: Access | 'nobody'
}

/** The header that the dashboard adds to each request; any value will do. */
export const dashboardHeader = 'postbote-dashboard'

interface FoundAccess {
  readonly access: Access
  /** The place of its key among the ended sessions. */
  readonly slot: number
  readonly session: bigint
}

/** `unknown` if the keys of the server are not known yet; `nobody` if the request has no valid key and no session. */
type Found = Access | 'unknown' | 'nobody'

export class PrivateApiGuard {
  readonly sessions: SessionCookie
  /** The sessions that were ended before their time. */
  readonly ended: EndedSessions
  /** All keys but the admin key. */
  readonly ring: AccessKeyRing
  readonly #keyHash: Buffer
  readonly #hosts: ReadonlySet<string>

  constructor(options: PrivateApiGuardOptions) {
    this.#keyHash = accessKeyHash(options.adminKey)
    this.ring = new AccessKeyRing(options.clock)
    this.#hosts = new Set(['localhost', ...options.hosts.map((host) => host.toLowerCase())])
    this.sessions = new SessionCookie(options.adminKey, options.clock)
    this.ended = options.endedSessions ?? new EndedSessions()
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
    const access = granted(this.#accessOf(request), headers.authorization)
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
    return granted(this.#ofKey(authorization), authorization)
  }

  /**
   * Returns who sends a request, whatever it wants: `root`, or the id of the first key of a family. Undefined if it has no valid key and no
   * session, or if that cannot be decided yet.
   */
  holderOf(request: GuardedRequest): string | undefined {
    const found = this.#accessOf(request)
    if (found === 'nobody' || found === 'unknown') return undefined
    return found === 'root' ? found : familyIdOf(found)
  }

  #accessOf(request: GuardedRequest): Found {
    const before = request[foundMark]
    if (before !== undefined) return before
    const found = this.#find(request)
    if (found !== 'unknown') request[foundMark] = found
    return found
  }

  /** A request with a wrong key is refused, even if it has a session, because its sender relies on the key. */
  #find({ headers }: GuardedRequest): Found {
    if (headers.authorization !== undefined) return this.#ofKey(headers.authorization)
    const found = this.#sessionOf(headers.cookie)
    return typeof found === 'object' ? found.access : found
  }

  /** Returns the session of a request, as `ended` knows it; undefined if the request has a key or no session. */
  sessionToEnd({ headers }: GuardedRequest): FoundAccess | undefined {
    const found = headers.authorization === undefined ? this.#sessionOf(headers.cookie) : 'nobody'
    return typeof found === 'object' ? found : undefined
  }

  #sessionOf(cookies: string | undefined): FoundAccess | 'unknown' | 'nobody' {
    for (const { holder, session } of this.sessions.sessionsOf(cookies)) {
      if (holder !== 'root' && !this.ring.isKnown) return 'unknown'
      const access = holder === 'root' ? holder : this.ring.ofSession(holder.id, holder.secretTag)
      if (access === undefined) continue
      const slot = sessionSlotOf(access)
      if (!this.ended.has(slot, session)) return { access, slot, session }
    }
    return 'nobody'
  }

  #ofKey(authorization: string | undefined): Found {
    const text = /^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1]
    if (text === undefined) return 'nobody'
    const key = parseAccessKey(text)
    const access = key && this.ring.find(key)
    if (access !== undefined) return access
    // An operator may have chosen an admin key that looks like another one.
    // Hashed first, so that keys of different lengths are compared in constant time.
    if (timingSafeEqual(accessKeyHash(text), this.#keyHash)) return 'root'
    return key === undefined || this.ring.isKnown ? 'nobody' : 'unknown'
  }
}

function granted(found: Found, authorization: string | undefined): Access {
  if (found === 'unknown') throw new PostboteError('KEYS_UNAVAILABLE')
  if (found === 'nobody') {
    throw new PostboteError('UNAUTHORIZED', { detail: `, got ${shownInstead(authorization)}` })
  }
  return found
}

/** What a request has in place of a valid key, without any part of it. */
function shownInstead(authorization: string | undefined): string {
  if (authorization === undefined) return 'no such header'
  const [, scheme = '', text = ''] = /^(\S*) *(.*)$/.exec(authorization.trim()) ?? []
  if (/^\d+:/.test(text || scheme)) return 'the token of a bot, which is no key of this API'
  if (scheme.toLowerCase() !== 'bearer') return 'a header that does not begin with "Bearer "'
  return text === '' ? 'no key after "Bearer"' : 'a key that this server does not have'
}

/** Returns the name in a Host header in lower case, without port, brackets and trailing dot. */
function hostNameOf(host: string): string {
  const bracketed = /^\[([^\]]*)\](?::\d*)?$/.exec(host)?.[1]
  if (bracketed !== undefined) return bracketed
  return host.replace(/:\d*$/, '').replace(/\.$/, '').toLowerCase()
}
