/**
 * The addresses of one webhook's host: verified by setWebhook, or looked up and judged here. They are kept for 30 minutes
 * and up to a tenth more, so that bots set up together do not ask together. Then they are looked up again in the
 * background while the old ones stay in use. If none of them can be connected to, they may be those of a machine that is
 * gone: the next connection waits for a new look-up. Connections use exactly these addresses and never a second look-up,
 * so a name that changes between check and use (DNS rebinding) has no effect.
 *
 * This file keeps no timer: the dispatcher calls `refreshIfDue` while it delivers, so an idle bot costs nothing.
 */
import { webhookAddressesMax } from '../limits.ts'
import { lookupFailureOf, WebhookFailure } from '../attempts/failure.ts'
import type { Endpoint } from './endpoint.ts'
import type { HostLookup } from './host-lookup.ts'
import { isPlainAddress } from '../../http/ip-address.ts'
import { type KnownAddresses, noAddresses } from './known-addresses.ts'
import type { Surroundings } from '../../kit/surroundings.ts'

/** Tells for each address whether it may be connected to, in the same order. */
export type AddressJudge = (addresses: readonly string[]) => Promise<readonly boolean[]>

export interface HostToResolve extends Pick<Endpoint, 'host' | 'hostIsAddress'> {
  /** `ip_address` of setWebhook, which replaces the look-up. */
  readonly pinnedAddress?: string | undefined
}

export interface ResolvePorts {
  readonly lookup: HostLookup
  readonly judge: AddressJudge
}

/** All addresses that may not be connected to, and the first ones that may. */
export interface JudgedAddresses {
  readonly allowed: readonly string[]
  readonly blocked: readonly string[]
}

/**
 * Resolves and judges a host. Returns all addresses that may not be connected to, and the first ones that may; throws a
 * WebhookFailure if the look-up fails. Every address is judged, because one in a thousand may be forbidden. A name has at
 * most some 6,000 addresses.
 */
export async function resolveHost(
  target: HostToResolve,
  ports: ResolvePorts,
): Promise<JudgedAddresses> {
  return judgeAddresses(await findAddresses(target, ports.lookup), ports.judge)
}

/** Judges the addresses of a host, as `resolveHost` does. */
export async function judgeAddresses(
  found: readonly string[],
  judge: AddressJudge,
): Promise<JudgedAddresses> {
  const verdicts = await judge(found)
  return {
    allowed: found
      .filter((_address, index) => verdicts[index] === true)
      .slice(0, webhookAddressesMax),
    blocked: found.filter((_address, index) => verdicts[index] !== true),
  }
}

/** Returns all addresses of a host, before they are judged. Throws a WebhookFailure if the look-up fails. */
export async function findAddresses(
  target: HostToResolve,
  hostLookup: HostLookup,
): Promise<readonly string[]> {
  if (target.pinnedAddress !== undefined) return [target.pinnedAddress]
  if (target.hostIsAddress) return [target.host]
  let found: readonly string[]
  try {
    found = await hostLookup(target.host)
  } catch (error) {
    throw lookupFailureOf(error)
  }
  const plain = found.filter((address) => isPlainAddress(address))
  if (plain.length === 0) throw noAddress()
  return [...new Set(plain)]
}

/** Uses the system's wording, which frameworks search for. */
function noAddress(): WebhookFailure {
  return new WebhookFailure('Failed to resolve host: No address associated with hostname')
}

export function reservedAddress(address: string): WebhookFailure {
  return new WebhookFailure(`IP address ${address} is reserved`)
}

export interface HostAddressesOptions extends Pick<Surroundings, 'clock' | 'random'> {
  readonly target: HostToResolve
  readonly ports: ResolvePorts
  /** The known addresses, updated in place. */
  readonly known?: KnownAddresses | undefined
  /** The verified address. It is tried first if the name still has it. */
  readonly preferred?: string | undefined
  /** The set of usable addresses has changed. */
  onChange(): void
}

/** Resolved addresses are used this long, plus up to 10 % so that look-ups spread. [ref] */
export const webhookResolvedForMs = 30 * 60_000
/** After a failed background look-up the last addresses stay in use, and the next look-up comes this much later. */
const webhookResolveRetryMs = 60_000
/**
 * Addresses of which none can be connected to are looked up again, this often at most. Chosen: a container that is made
 * again is reached soon after it listens, and an endpoint that is down for long causes few look-ups.
 */
const webhookLookUpAgainMs = 10_000

export class HostAddresses {
  readonly #options: HostAddressesOptions
  readonly #known: KnownAddresses
  #preferred: string | undefined
  #dueMs: number
  /** When the name was looked up last, monotonic. */
  #lookedUpMs = Number.NEGATIVE_INFINITY
  /** So many addresses could not be connected to since one could. */
  #failedInRow = 0
  /** Somebody says that the addresses may have changed. */
  #isDoubted = false
  /** The addresses of which the owner knows. */
  #reported: readonly string[]
  #resolving: Promise<void> | undefined
  #stopped = false

  constructor(options: HostAddressesOptions) {
    const { clock, known = noAddresses(), preferred } = options
    this.#options = options
    this.#known = known
    this.#preferred = this.#current ?? preferred
    this.#dueMs = this.#ageOut()
    // If the known addresses are too old, the name is looked up before the first connection.
    if (clock.monotonicMs() >= this.#dueMs) known.addresses = []
    this.#reported = known.addresses
  }

  /** Tells whether connections to `address` may continue. */
  has(address: string): boolean {
    return this.#known.addresses.includes(address)
  }

  /**
   * Returns an address to connect to: the last good one, or the one after it if that failed. If all have failed, the name
   * is looked up first; if that fails, they are tried again.
   */
  async pick(): Promise<string> {
    if (this.#known.addresses.length === 0) {
      this.#resolving ??= this.#resolve()
      await this.#resolving
    } else if (this.#isInDoubt) {
      await this.#lookUpAgain()
    }
    const address = this.#current
    if (address === undefined) throw noAddress()
    return address
  }

  /** Picks an address, or rejects when the signal is aborted. The look-up itself cannot be aborted and continues. */
  pickUntil(signal: AbortSignal): Promise<string> {
    return new Promise((resolve, reject) => {
      const abort = (): void => reject(signal.reason)
      signal.addEventListener('abort', abort, { once: true })
      this.pick()
        .then(resolve, reject)
        .finally(() => signal.removeEventListener('abort', abort))
    })
  }

  /** Makes the next connection use another address, if there is one. */
  failed(address: string): void {
    if (this.#current !== address) return
    this.#known.next++
    this.#failedInRow++
  }

  /** Reports that an address could be connected to. */
  connected(): void {
    this.#failedInRow = 0
  }

  /** Makes the next connection wait for a new look-up, unless the last one was a moment ago. */
  doubt(): void {
    this.#isDoubted = true
  }

  /** Looks the name up again if that is due. Cheap; called whenever deliveries are sent. */
  refreshIfDue(monotonicMs: number): void {
    this.#reportChange()
    if (this.#known.addresses.length === 0 || monotonicMs < this.#dueMs) return
    if (this.#resolving !== undefined) return
    this.#resolving = this.#resolve()
    // After a failure the old addresses stay in use. Only a caller of pick() gets the error.
    this.#resolving.catch(() => undefined)
  }

  /** Ignores the result of a look-up that is still in progress. */
  close(): void {
    this.#stopped = true
    this.#resolving?.catch(() => undefined)
  }

  get #current(): string | undefined {
    const { addresses, next } = this.#known
    return addresses[next % addresses.length]
  }

  get #isInDoubt(): boolean {
    return this.#isDoubted || this.#failedInRow >= this.#known.addresses.length
  }

  /** If the name cannot be looked up, the addresses stay in use. */
  async #lookUpAgain(): Promise<void> {
    const lastMs = Math.max(this.#lookedUpMs, this.#known.foundMs)
    const isEarly = this.#options.clock.monotonicMs() < lastMs + webhookLookUpAgainMs
    if (this.#resolving === undefined && isEarly) return
    this.#resolving ??= this.#resolve()
    try {
      await this.#resolving
    } catch (error) {
      if (this.#known.addresses.length === 0) throw error
    }
  }

  /** Returns when the addresses must be looked up again, monotonic. */
  #ageOut(): number {
    return this.#known.foundMs + webhookResolvedForMs * (1 + this.#options.random() / 10)
  }

  async #resolve(): Promise<void> {
    const { target, ports, clock } = this.#options
    try {
      this.#lookedUpMs = clock.monotonicMs()
      this.#isDoubted = false
      this.#dueMs = this.#lookedUpMs + webhookResolveRetryMs
      const { allowed, blocked } = await resolveHost(target, ports)
      if (this.#stopped) return
      this.#use(allowed)
      if (allowed.length === 0) throw reservedAddress(blocked[0] ?? target.host)
      this.#known.foundMs = clock.monotonicMs()
      this.#dueMs = this.#ageOut()
    } finally {
      this.#resolving = undefined
    }
  }

  #use(addresses: readonly string[]): void {
    const known = this.#known
    const same =
      addresses.length === known.addresses.length && addresses.every((one) => this.has(one))
    if (same) return
    this.#preferred = this.#current ?? this.#preferred
    known.addresses = addresses
    known.next = Math.max(addresses.indexOf(this.#preferred ?? ''), 0)
    this.#failedInRow = 0
    this.#reportChange()
  }

  /** A setWebhook may have replaced the known addresses, too. */
  #reportChange(): void {
    if (this.#known.addresses === this.#reported) return
    this.#reported = this.#known.addresses
    this.#options.onChange()
  }
}
