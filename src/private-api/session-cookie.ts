/**
 * The session of a browser that has logged in to the dashboard: a cookie that proves that its holder had the admin key.
 *
 *     postbote_session=<expiry>.<mac>      expiry: Unix seconds in base 36
 *                                          mac: HMAC-SHA256 of the expiry, in base64url
 *
 * The key of the HMAC is derived from the admin key, so every worker and every node accepts the cookie and none stores
 * it. The cost: a session cannot be ended by the server before its expiry. A new admin key ends all sessions.
 *
 * A cookie is sent to every port of a host name and a page cannot read it (HttpOnly). A page of another site cannot use
 * it (SameSite=Strict), and a page on another port of this host cannot change anything with it (`dashboardHeader`).
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
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
   * @param isSecure - whether the browser may send the cookie over TLS only
   * @returns the Set-Cookie header and the end of the session
   */
  create(isSecure: boolean): Session {
    const expiresAtS = Math.floor(this.#clock.nowMs() / 1_000) + sessionS
    const expiry = expiresAtS.toString(36)
    const value = `${expiry}.${this.#macOf(expiry).toString('base64url')}`
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
   * Returns whether a Cookie header has a session that has not ended.
   *
   * @param cookies - the header; undefined if there is none
   */
  isValid(cookies: string | undefined): boolean {
    const value = valueIn(cookies ?? '')
    if (value === undefined || value.length > sessionCookieLengthMax) return false
    const [, expiry = '', mac = ''] = /^([0-9a-z]{1,10})\.([\w-]{43})$/.exec(value) ?? []
    if (expiry === '') return false
    const isOurs = timingSafeEqual(Buffer.from(mac, 'base64url'), this.#macOf(expiry))
    return isOurs && this.#clock.nowMs() < Number.parseInt(expiry, 36) * 1_000
  }

  #macOf(expiry: string): Buffer {
    return createHmac('sha256', this.#key).update(expiry).digest()
  }
}

/** Returns the first cookie with the name of the session's. */
function valueIn(cookies: string): string | undefined {
  const prefix = `${sessionCookieName}=`
  return cookies
    .split(';')
    .map((cookie) => cookie.trim())
    .find((cookie) => cookie.startsWith(prefix))
    ?.slice(prefix.length)
}
