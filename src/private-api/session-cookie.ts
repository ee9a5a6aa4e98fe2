/**
 * The session of a browser that has logged in to the dashboard: a cookie that proves that its holder had a key.
 *
 *     postbote_session=<expiry>.<mac>                    of the admin key
 *     postbote_session=<expiry>.<id>.<tag>.<mac>         of another key, by one of its secrets
 *
 *     expiry: Unix seconds in base 36                    id, tag: of the key, and of its secret (access/access.ts)
 *     mac:    HMAC-SHA256 of what stands before it, in base64url
 *
 * The key of the HMAC is derived from the admin key, so every worker and every node accepts the cookie and none stores
 * it. A session ends at its expiry, or with the secret that it began with; a new admin key ends all sessions.
 *
 * A cookie is sent to every port of a host name and a page cannot read it (HttpOnly). A page of another site cannot use
 * it (SameSite=Strict), and a page on another port of this host cannot change anything with it (`dashboardHeader`).
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Access, KeyAccess } from '../access/access.ts'
import type { Clock } from '../clock.ts'
import { sessionCookieLengthMax, sessionS } from './limits.ts'

export interface SessionCookieOptions {
  readonly adminKey: string
  readonly clock: Pick<Clock, 'nowMs'>
}

/** A new session. */
export interface Session {
  /** The value of the Set-Cookie header. */
  readonly setCookie: string
  /** Unix seconds. */
  readonly expiresAtS: number
}

/** Whose session it is. */
export type SessionHolder = 'root' | Pick<KeyAccess, 'id' | 'secretTag'>

/** The name of the cookie. */
export const sessionCookieName = 'postbote_session'
const attributes = 'Path=/; HttpOnly; SameSite=Strict'

/** Creates and checks the cookies of sessions. */
export class SessionCookie {
  readonly #key: Buffer
  readonly #clock: Pick<Clock, 'nowMs'>

  constructor({ adminKey, clock }: SessionCookieOptions) {
    // The purpose in the derivation keeps this key apart from all others that come from the admin key.
    this.#key = createHmac('sha256', adminKey).update('postbote dashboard session').digest()
    this.#clock = clock
  }

  /**
   * Creates a session that begins now.
   *
   * @param access - what the session stands for
   * @param isSecure - whether the browser may send the cookie over TLS only
   * @returns the Set-Cookie header and the end of the session
   */
  create(access: Access, isSecure: boolean): Session {
    const expiresAtS = Math.floor(this.#clock.nowMs() / 1_000) + sessionS
    const expiry = expiresAtS.toString(36)
    const text = access === 'root' ? expiry : `${expiry}.${access.id}.${access.secretTag}`
    const value = `${text}.${this.#macOf(text).toString('base64url')}`
    const secure = isSecure ? '; Secure' : ''
    return {
      setCookie: `${sessionCookieName}=${value}; ${attributes}; Max-Age=${sessionS}${secure}`,
      expiresAtS,
    }
  }

  /** The Set-Cookie header that removes the cookie from the browser. */
  get removal(): string {
    return `${sessionCookieName}=; ${attributes}; Max-Age=0`
  }

  /**
   * Returns whose session a Cookie header has; undefined if it has none that is valid. Whether the key is still valid is
   * not checked here.
   *
   * @param cookies - the header; undefined if there is none
   */
  holderOf(cookies: string | undefined): SessionHolder | undefined {
    const value = valueIn(cookies ?? '')
    if (value === undefined || value.length > sessionCookieLengthMax) return undefined
    const parts = shape.exec(value)?.groups
    return parts === undefined ? undefined : this.#holder(parts)
  }

  #holder(parts: Readonly<Record<string, string | undefined>>): SessionHolder | undefined {
    const { text = '', expiry = '', id, tag: secretTag = '', mac = '' } = parts
    const isOurs = timingSafeEqual(Buffer.from(mac, 'base64url'), this.#macOf(text))
    if (!isOurs || this.#clock.nowMs() >= Number.parseInt(expiry, 36) * 1_000) return undefined
    return id === undefined ? 'root' : { id, secretTag }
  }

  #macOf(text: string): Buffer {
    return createHmac('sha256', this.#key).update(text).digest()
  }
}

const shape =
  /^(?<text>(?<expiry>[0-9a-z]{1,10})(?:\.(?<id>[0-9a-f]{16})\.(?<tag>[\w-]{10}))?)\.(?<mac>[\w-]{43})$/

/** Returns the first cookie with the name of the session's. */
function valueIn(cookies: string): string | undefined {
  const prefix = `${sessionCookieName}=`
  return cookies
    .split(';')
    .map((cookie) => cookie.trim())
    .find((cookie) => cookie.startsWith(prefix))
    ?.slice(prefix.length)
}
