/**
 * Decides who may use the private API: a client with the admin key whose Host header no web page can rebind.
 *
 * A browser that a rebound DNS name led here sends that name as its Host. An IP address, localhost or a name that the
 * operator listed cannot be rebound. Browsers cannot reach a Unix socket.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import { isIP } from 'node:net'
import { PostboteError } from '../errors.ts'

export interface AdminGuardOptions {
  readonly adminKey: string
  /** The names of `--admin-host`, in lower case. */
  readonly hosts: readonly string[]
}

export class PrivateApiGuard {
  readonly #keyHash: Buffer
  readonly #hosts: ReadonlySet<string>

  constructor(options: AdminGuardOptions) {
    this.#keyHash = hashOf(options.adminKey)
    this.#hosts = new Set(['localhost', ...options.hosts.map((host) => host.toLowerCase())])
  }

  /** Throws BAD_HOST if the Host header is missing or not allowed. */
  checkHost(host: string | undefined): void {
    const name = hostNameOf(host ?? '')
    if (isIP(name) === 0 && !this.#hosts.has(name)) throw new PostboteError('BAD_HOST')
  }

  /** Throws UNAUTHORIZED if the Authorization header does not have the admin key. */
  checkKey(authorization: string | undefined): void {
    if (!this.hasKey(authorization)) throw new PostboteError('UNAUTHORIZED')
  }

  hasKey(authorization: string | undefined): boolean {
    const key = /^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1]
    return key !== undefined && timingSafeEqual(hashOf(key), this.#keyHash)
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
