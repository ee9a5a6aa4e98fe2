/**
 * Who may use the private API: whoever has the admin key, under a Host that no web page can rebind.
 *
 * A browser that was led here by a rebound DNS name sends that name as its Host; an IP address, localhost or a
 * name the operator listed cannot be rebound. A Unix socket is out of any browser's reach.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import { isIP } from 'node:net'
import { PostboteError } from '../errors.ts'

export interface AdminGuardOptions {
  readonly adminKey: string
  /** `--admin-host`, in lower case. */
  readonly hosts: readonly string[]
}

export class AdminGuard {
  readonly #keyHash: Buffer
  readonly #hosts: ReadonlySet<string>

  constructor(options: AdminGuardOptions) {
    this.#keyHash = hashOf(options.adminKey)
    this.#hosts = new Set(['localhost', ...options.hosts.map((host) => host.toLowerCase())])
  }

  /** Throws BAD_HOST. */
  checkHost(host: string | undefined): void {
    const name = hostNameOf(host ?? '')
    if (isIP(name) === 0 && !this.#hosts.has(name)) throw new PostboteError('BAD_HOST')
  }

  /** Throws UNAUTHORIZED. */
  checkKey(authorization: string | undefined): void {
    if (!this.hasKey(authorization)) throw new PostboteError('UNAUTHORIZED')
  }

  hasKey(authorization: string | undefined): boolean {
    const key = /^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1]
    return key !== undefined && timingSafeEqual(hashOf(key), this.#keyHash)
  }
}

/** The name in a Host header, without port, brackets and trailing dot, in lower case. */
function hostNameOf(host: string): string {
  const bracketed = /^\[([^\]]*)\](?::\d*)?$/.exec(host)?.[1]
  if (bracketed !== undefined) return bracketed
  return host.replace(/:\d*$/, '').replace(/\.$/, '').toLowerCase()
}

/** Hashed first, so that keys of different lengths are compared in constant time. */
function hashOf(key: string): Buffer {
  return createHash('sha256').update(key).digest()
}
