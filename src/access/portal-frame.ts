/**
 * The origin that may show the owner's page in a frame. A browser does not send the secret of a link with its first request,
 * so the origin stands in the query, with a proof that a link was made with it:
 *
 *     /portal/?origin=https%3A%2F%2Fplatform.example&mac=<HMAC-SHA256 of the origin, base64url>
 *
 * Any worker can check that without a read, and the check tells nothing about a bot or a link. The key of the HMAC is derived
 * from the admin key.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'

export class PortalFrame {
  readonly #key: Buffer

  constructor(adminKey: string) {
    // The purpose in the derivation keeps this key apart from all others that come from the admin key.
    this.#key = createHmac('sha256', adminKey).update('postbote portal frame').digest()
  }

  /** Returns the query of a page that an origin may frame; nothing without an origin. */
  query(origin: string | undefined): string {
    if (origin === undefined) return ''
    const mac = this.#macOf(origin).toString('base64url')
    return `?${new URLSearchParams({ origin, mac }).toString()}`
  }

  /** Returns the origin in a query; undefined if it has none, or another one than a link was made with. */
  originIn({ origin, mac }: Readonly<Record<string, unknown>>): string | undefined {
    if (typeof origin !== 'string' || typeof mac !== 'string') return undefined
    const given = Buffer.from(mac, 'base64url')
    const right = this.#macOf(origin)
    return given.length === right.length && timingSafeEqual(given, right) ? origin : undefined
  }

  #macOf(origin: string): Buffer {
    return createHmac('sha256', this.#key).update(origin).digest()
  }
}
