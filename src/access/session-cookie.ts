/**
 * The session of a browser that has logged in to the dashboard: a cookie that proves that its holder had a key.
 *
 *     postbote_session=<expiry>.<nonce>.<mac>                    of the admin key
 *     postbote_session=<expiry>.<nonce>.<id>.<tag>.<mac>         of another key, by one of its secrets
 *
 *     expiry: Unix seconds in base 36            id, tag: of the key, and of its secret (api/access.ts)
 *     nonce:  8 random hexadecimal digits        mac: HMAC-SHA256 of what stands before it, in base64url
 *
 * The key of the HMAC is derived from the admin key, so every worker and every node accepts the cookie and none stores
 * it. A session ends at its expiry, with the secret that it began with, or when it is ended (process/ended-sessions.ts); a
 * new admin key ends all sessions.
 *
 * A cookie is sent to every port of a host name and a page cannot read it (HttpOnly). A page of another site cannot use
 * it (SameSite=Strict), and a page on another port of this host cannot change anything with it (`dashboardHeader`). Such a
 * page can add a cookie with the same name, which may come first: so all are looked at, and the session that began last
 * counts, which is the own one after each login. Over TLS the name has a prefix with which browsers accept the cookie only
 * from this host and over TLS.
 */
import assert from 'node:assert/strict'
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Access, KeyAccess } from '../api/access.ts'
import type { Clock } from '../kit/clock.ts'

/** A new session. */
export interface Session {
  /** The value of the Set-Cookie header. */
  readonly setCookie: string
  /** Unix seconds. */
  readonly expiresAtS: number
}

/** A session of a request. */
export interface FoundSession {
  /** Whose session it is. */
  readonly holder: 'root' | Pick<KeyAccess, 'id' | 'secretTag'>
  /** Its number: a session that began later has a larger one. */
  readonly session: bigint
}

/** The name of the cookie. */
export const sessionCookieName = 'postbote_session'
const secureCookieName = `__Host-${sessionCookieName}`
const attributes = 'Path=/; HttpOnly; SameSite=Strict'

/** A session lasts this long: a working day with a margin. It ends earlier with the key that it began with. */
export const sessionS = 12 * 3_600

/** Creates and checks the cookies of sessions. */
export class SessionCookie {
  readonly #key: Buffer
  readonly #clock: Pick<Clock, 'nowMs'>

  constructor(adminKey: string, clock: Pick<Clock, 'nowMs'>) {
    assert(adminKey !== '', 'the key of sessions comes from a secret')
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
    const begin = `${expiresAtS.toString(36)}.${randomBytes(nonceBytes).toString('hex')}`
    const text = access === 'root' ? begin : `${begin}.${access.id}.${access.secretTag}`
    const value = `${text}.${this.#macOf(text).toString('base64url')}`
    const [name, secure] = isSecure ? [secureCookieName, '; Secure'] : [sessionCookieName, '']
    return {
      setCookie: `${name}=${value}; ${attributes}; Max-Age=${sessionS}${secure}`,
      expiresAtS,
    }
  }

  /** The Set-Cookie headers that remove the cookie from the browser. */
  get removal(): readonly string[] {
    return [
      `${sessionCookieName}=; ${attributes}; Max-Age=0`,
      `${secureCookieName}=; ${attributes}; Max-Age=0; Secure`,
    ]
  }

  /**
   * Returns the sessions that a Cookie header has, the one that counts most first: those with the name for TLS, and of
   * them the one that began last. Whether their keys are still valid, or the sessions were ended, is not checked here.
   *
   * @param cookies - the header; undefined if there is none
   */
  sessionsOf(cookies: string | undefined): readonly FoundSession[] {
    if (cookies === undefined) return []
    return [secureCookieName, sessionCookieName].flatMap((name) =>
      valuesOf(name, cookies)
        .flatMap((value) => this.#found(shape.exec(value)?.groups ?? {}))
        .toSorted((a, b) => (a.session > b.session ? -1 : 1)),
    )
  }

  #found(parts: Readonly<Record<string, string | undefined>>): readonly FoundSession[] {
    const { text, expiry = '', nonce, id, tag: secretTag = '', mac = '' } = parts
    if (text === undefined) return []
    const isOurs = timingSafeEqual(Buffer.from(mac, 'base64url'), this.#macOf(text))
    const expiresAtS = Number.parseInt(expiry, 36)
    if (!isOurs || this.#clock.nowMs() >= expiresAtS * 1_000) return []
    const session = (BigInt(expiresAtS) << 32n) | BigInt(`0x${nonce}`)
    return [{ holder: id === undefined ? 'root' : { id, secretTag }, session }]
  }

  #macOf(text: string): Buffer {
    return createHmac('sha256', this.#key).update(text).digest()
  }
}

const nonceBytes = 4
const shape =
  /^(?<text>(?<expiry>[0-9a-z]{1,10})\.(?<nonce>[0-9a-f]{8})(?:\.(?<id>[0-9a-f]{16})\.(?<tag>[\w-]{10}))?)\.(?<mac>[\w-]{43})$/

/** The cookie of a session has at most this many characters; a longer one is not looked at. It takes 88. */
const sessionCookieLengthMax = 96
/** So many cookies with its name are looked at. Browsers send 180 of a host at most, with paths that let each come first. */
const sessionCookiesMax = 200

/** Returns the values of the cookies with this name that may be sessions. */
function valuesOf(name: string, cookies: string): readonly string[] {
  const prefix = `${name}=`
  return cookies
    .split(';')
    .map((cookie) => cookie.trim())
    .filter((cookie) => cookie.startsWith(prefix))
    .map((cookie) => cookie.slice(prefix.length))
    .filter((value) => value.length <= sessionCookieLengthMax)
    .slice(0, sessionCookiesMax)
}
