/**
 * Who sends a request, for all that counts clients (docs/inside/ledgers.md).
 *
 * A client is counted under its key if it shows one, and otherwise under its address: its own, or the one that a reverse proxy
 * reports. X-Real-Ip is believed only if the connection comes from a reserved address or a Unix socket: a proxy is in the server's
 * own network, and anybody on the internet can write a header. IPv6 counts per /64, because one customer gets a /64; an
 * IPv4 address within IPv6 counts as IPv4.
 */
import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import { compileBlocklist, isBlocked } from './blocklist.ts'
import { requestOrigin } from './connection-origin.ts'
import { ipAddressBytes, unmappedBytes } from './ip-address.ts'

/** The address of all clients of a Unix socket whose proxy reports no client. They are counted as one. */
export const unixClient = 'unix'

export interface Client {
  /** Whose key a request to the private listener has: `root`, the id of a key, or undefined. */
  readonly holder: string | undefined
  /** The address under which it is counted. */
  readonly address: string
  /** The name under which it is counted: that of its key, or else its address. */
  readonly account: string
  /**
   * Whether it may run up debts. The admin key has none, and neither have the clients of a Unix socket that nobody tells apart.
   */
  readonly isCharged: boolean
  /** Whether many clients may share the address. */
  readonly isShared: boolean
  /** Whether a reverse proxy has reported it. */
  readonly isReported: boolean
}

export type ClientOf = (request: IncomingMessage) => Client

/** Returns what finds out who sends a request. `holderOf` returns whose key a request has. */
export function clientsBy(holderOf: (request: IncomingMessage) => string | undefined): ClientOf {
  return (request) => new RequestClient(request, holderOf)
}

/** The name under which the holder of a key is counted. */
export function keyAccount(holder: string): string {
  return `key ${holder}`
}

/** Nothing is found out before it is asked for: most requests are asked for one thing. */
class RequestClient implements Client {
  readonly #request: IncomingMessage
  readonly #holderOf: (request: IncomingMessage) => string | undefined

  constructor(
    request: IncomingMessage,
    holderOf: (request: IncomingMessage) => string | undefined,
  ) {
    this.#request = request
    this.#holderOf = holderOf
  }

  get holder(): string | undefined {
    const isPrivate = requestOrigin(this.#request)?.listener === 'private'
    return isPrivate ? this.#holderOf(this.#request) : undefined
  }

  get address(): string {
    return clientAddress(this.#socketAddress, this.#realIp)
  }

  get account(): string {
    const { holder } = this
    return holder === undefined ? this.address : keyAccount(holder)
  }

  get isCharged(): boolean {
    const { holder } = this
    return holder === undefined ? this.address !== unixClient : holder !== 'root'
  }

  get isShared(): boolean {
    return isShared(this.#socketAddress, this.#realIp)
  }

  get isReported(): boolean {
    const realIp = this.#realIp
    if (realIp === undefined) return false
    return this.address !== clientAddress(this.#socketAddress, undefined)
  }

  get #socketAddress(): string {
    return requestOrigin(this.#request)?.clientAddress ?? ''
  }

  get #realIp(): unknown {
    return this.#request.headers['x-real-ip']
  }
}

/** Returns the address under which a client is counted. */
export function clientAddress(socketAddress: string | undefined, realIp: unknown): string {
  const isUnix = isUnixSocket(socketAddress)
  const own = isUnix ? unixClient : countedAs(socketAddress)
  if (!isAddress(realIp)) return own
  return isUnix || isReserved(socketAddress) ? countedAs(realIp.trim()) : own
}

/** Returns the address of a client as a person is shown it: that of one machine, whatever it is counted with. */
export function reportedAddress(socketAddress: string, realIp: unknown): string {
  const isBelieved = isUnixSocket(socketAddress) || isReserved(socketAddress)
  if (isBelieved && isAddress(realIp)) return realIp.trim()
  return isUnixSocket(socketAddress)
    ? unixClient
    : socketAddress.replace(/^::ffff:(?=[\d.]+$)/i, '')
}

/** Returns whether many clients may share the address: there may be a proxy that does not report its clients. */
export function isShared(socketAddress: string | undefined, realIp: unknown): boolean {
  return !isAddress(realIp) && (isUnixSocket(socketAddress) || isReserved(socketAddress))
}

function isUnixSocket(socketAddress: string | undefined): socketAddress is undefined | '' {
  return socketAddress === undefined || socketAddress === ''
}

function isAddress(header: unknown): header is string {
  return typeof header === 'string' && isIP(header.trim()) !== 0
}

function countedAs(address: string): string {
  const parsed = ipAddressBytes(address)
  if (parsed === undefined) return address
  const bytes = unmappedBytes(parsed)
  if (bytes.length === 4) return bytes.join('.')
  const network = [0, 2, 4, 6].map((at) =>
    (((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0)).toString(16),
  )
  return `${network.join(':')}::/64`
}

/** The blocklist of webhooks without the changes of --allow-cidr and --block-cidr. */
const reserved = compileBlocklist({ local: false, block: [], allow: [] })

function isReserved(address: string): boolean {
  // Webhooks block text that is not an address, but such text is not part of anybody's own network.
  return ipAddressBytes(address) !== undefined && isBlocked(reserved, address)
}
