/**
 * The addresses of one webhook's host: those that setWebhook has verified, or looked up once, judged, kept for 30 minutes (and up to a tenth more,
 * so that bots set up together do not ask together), then looked up again in the background while the old
 * ones stay in use. Connections go to exactly these addresses, never through a second look-up: a name that
 * changes its answer between check and use (DNS rebinding) gets nowhere.
 *
 * Nothing here keeps a timer: the dispatcher asks `refreshIfDue` while it delivers, so an idle bot costs
 * nothing.
 */

import type { Clock } from '../clock.ts'
import { webhookAddressesMax, webhookResolvedForMs, webhookResolveRetryMs } from '../limits.ts'
import { lookupFailureOf, WebhookFailure } from './failure.ts'
import type { HostLookup } from './host-lookup.ts'
import { isPlainAddress } from '../net/ip-address.ts'
import { type KnownAddresses, noAddresses } from './known-addresses.ts'

/** Whether each address may be connected to, in the order given. */
export type AddressJudge = (addresses: readonly string[]) => Promise<readonly boolean[]>

export interface HostToResolve {
  readonly host: string
  readonly hostIsAddress: boolean
  /** `ip_address` of setWebhook: takes the place of the look-up. */
  readonly pinnedAddress?: string | undefined
}

export interface ResolvePorts {
  readonly lookup: HostLookup
  readonly judge: AddressJudge
}

/**
 * All addresses that may not be connected to, and the first ones that may; throws a WebhookFailure where the look-up
 * fails. Every address is judged: one among a thousand may be the one that is not allowed. A name has some 6,000 at
 * most.
 */
export async function resolveHost(
  target: HostToResolve,
  ports: ResolvePorts,
): Promise<{ readonly allowed: readonly string[]; readonly blocked: readonly string[] }> {
  const found = await findAddresses(target, ports.lookup)
  const verdicts = await ports.judge(found)
  return {
    allowed: found
      .filter((_address, index) => verdicts[index] === true)
      .slice(0, webhookAddressesMax),
    blocked: found.filter((_address, index) => verdicts[index] !== true),
  }
}

async function findAddresses(
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

/** In the system's words, which frameworks look for. */
function noAddress(): WebhookFailure {
  return new WebhookFailure('Failed to resolve host: No address associated with hostname')
}

export function reservedAddress(address: string): WebhookFailure {
  return new WebhookFailure(`IP address ${address} is reserved`)
}

export interface HostAddressesOptions {
  readonly target: HostToResolve
  readonly ports: ResolvePorts
  readonly clock: Clock
  readonly random: () => number
  /** What is known of them; kept up to date. */
  readonly known?: KnownAddresses | undefined
  /** Tried first where the name still has it: the one that was verified. */
  readonly preferred?: string | undefined
  /** The set of usable addresses is now another one. */
  onChange(): void
}

export class HostAddresses {
  readonly #options: HostAddressesOptions
  readonly #known: KnownAddresses
  #preferred: string | undefined
  #dueMs: number
  #resolving: Promise<void> | undefined
  #stopped = false

  constructor(options: HostAddressesOptions) {
    const { clock, known = noAddresses(), preferred } = options
    this.#options = options
    this.#known = known
    this.#preferred = this.#current ?? preferred
    this.#dueMs = this.#ageOut()
    // After hours without a delivery the name is asked for before anything is connected to.
    if (clock.monotonicMs() >= this.#dueMs) known.addresses = []
  }

  /** Whether connections to `address` may go on. */
  has(address: string): boolean {
    return this.#known.addresses.includes(address)
  }

  /** An address to connect to: the last good one, or the one after it when that failed. */
  async pick(): Promise<string> {
    if (this.#known.addresses.length === 0) {
      this.#resolving ??= this.#resolve()
      await this.#resolving
    }
    const address = this.#current
    if (address === undefined) throw noAddress()
    return address
  }

  /** The next connection goes to another address, where there is one. */
  failed(address: string): void {
    if (this.#current === address) this.#known.next++
  }

  /** Cheap; called whenever deliveries are handed out. */
  refreshIfDue(monotonicMs: number): void {
    if (this.#known.addresses.length === 0 || monotonicMs < this.#dueMs) return
    if (this.#resolving !== undefined) return
    this.#resolving = this.#resolve()
    // The old addresses stay in use after a failure; only a caller of pick() needs to hear of it.
    this.#resolving.catch(() => undefined)
  }

  /** Answers of a look-up that is still under way are ignored from now on. */
  stop(): void {
    this.#stopped = true
    this.#resolving?.catch(() => undefined)
  }

  get #current(): string | undefined {
    const { addresses, next } = this.#known
    return addresses[next % addresses.length]
  }

  /** Monotonic: when they are to be looked up again. */
  #ageOut(): number {
    return this.#known.foundMs + webhookResolvedForMs * (1 + this.#options.random() / 10)
  }

  async #resolve(): Promise<void> {
    const { target, ports, clock } = this.#options
    try {
      this.#dueMs = clock.monotonicMs() + webhookResolveRetryMs
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
    this.#options.onChange()
  }
}
