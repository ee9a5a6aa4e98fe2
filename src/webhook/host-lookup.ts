/**
 * Looks the names of webhooks up without holding a thread. getaddrinfo, which Node's `lookup` is, takes one of a few for
 * as long as a name server keeps silent: some bots' names would hold up those of all others. (Measured with 300 silent
 * names: no other setWebhook succeeded for over a minute.)
 *
 *     the hosts file --> name servers, both families at once --no such name--> getaddrinfo, where local names count
 */

import { lookup } from 'node:dns'
import { Resolver } from 'node:dns/promises'
import { type Clock, sleep } from '../clock.ts'
import {
  lookupsPerTurnMax,
  lookupTurnMs,
  nameServerTimeoutMs,
  nameServerTries,
  secondFamilyWaitMs,
} from '../limits.ts'
import { PerTurn } from '../kit/per-turn.ts'
import { isPlainAddress } from '../net/ip-address.ts'

/** All addresses of a name; rejects with an error whose code is ENOTFOUND or EAI_AGAIN. */
export type HostLookup = (host: string) => Promise<readonly string[]>

export interface HostLookupOptions {
  readonly clock: Clock
  /** The text of the hosts file. */
  readHosts(): Promise<string>
  /** For names that no name server knows; undefined where those do not count. */
  readonly local?: HostLookup | undefined
  /** Instead of the system's; for tests. */
  readonly servers?: readonly string[]
}

/** By the system's own rules: search domains, other sources than DNS. Holds a thread. */
export const systemLookup: HostLookup = (host) =>
  new Promise((resolve, reject) => {
    lookup(host, { all: true, order: 'verbatim' }, (error, found) => {
      if (error === null) resolve(found.map((one) => one.address))
      else reject(error)
    })
  })

export function createHostLookup(options: HostLookupOptions): HostLookup {
  const nameServers = new NameServers(options)
  return sharedLookup(async (host) => {
    const listed = addressesInHosts(await options.readHosts(), host)
    if (listed.length > 0) return listed
    try {
      return await nameServers.addressesOf(host)
    } catch (error) {
      if (options.local === undefined || !isNotFound(error)) throw error
      return options.local(host)
    }
  })
}

/**
 * Whoever asks for a name that is being looked up gets the same answer: hundreds of bots may lie behind one name whose
 * server is slow.
 */
export function sharedLookup(hostLookup: HostLookup): HostLookup {
  const underWay = new Map<string, Promise<readonly string[]>>()
  return (host) => {
    let found = underWay.get(host)
    if (found === undefined) {
      found = hostLookup(host).finally(() => underWay.delete(host))
      underWay.set(host, found)
    }
    return found
  }
}

/** Of a file like /etc/hosts: an address and its names in each line. */
export function addressesInHosts(text: string, host: string): string[] {
  const wanted = withoutDot(host)
  return text.split('\n').flatMap((line) => {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().split(/\s+/)
    const isNamed = names.some((name) => withoutDot(name) === wanted)
    return isNamed && isPlainAddress(address) ? [address] : []
  })
}

function withoutDot(name: string): string {
  return name.toLowerCase().replace(/\.$/, '')
}

/** A failed look-up, with the code that getaddrinfo would give. */
class LookupError extends Error {
  readonly code: 'ENOTFOUND' | 'EAI_AGAIN'

  constructor(code: LookupError['code'], cause: unknown) {
    super(code, { cause })
    this.name = 'LookupError'
    this.code = code
  }
}

function isNotFound(error: unknown): boolean {
  return error instanceof LookupError && error.code === 'ENOTFOUND'
}

/** A name server has said so; all other codes are of its silence, or of its own trouble. */
const noSuchName: ReadonlySet<unknown> = new Set(['ENOTFOUND', 'ENODATA'])

class NameServers {
  readonly #options: HostLookupOptions
  /** What a name server's socket cannot take at once is lost, and asked again late. */
  readonly #turns: PerTurn

  constructor(options: HostLookupOptions) {
    this.#options = options
    this.#turns = new PerTurn({
      max: lookupsPerTurnMax,
      endTurn: (end) => void options.clock.after(lookupTurnMs, end),
    })
  }

  async addressesOf(host: string): Promise<readonly string[]> {
    await this.#turns.next()
    const resolver = this.#newResolver()
    const failures: unknown[] = []
    const found: readonly string[][] = [[], []]
    const families = [resolver.resolve4(host), resolver.resolve6(host)].map((answer, index) =>
      answer.then(
        (addresses) => void found[index]?.push(...addresses),
        (error: unknown) => void failures.push(error),
      ),
    )
    await this.#bothOrEnough(families, () => found.some((addresses) => addresses.length > 0))
    const addresses = found.flat()
    if (addresses.length > 0) return addresses
    const silence = failures.find((error) => !noSuchName.has(codeOf(error)))
    throw silence === undefined
      ? new LookupError('ENOTFOUND', failures[0])
      : new LookupError('EAI_AGAIN', silence)
  }

  /** Once there are addresses of one family, those of the other are waited for a short time only. */
  async #bothOrEnough(families: readonly Promise<void>[], hasSome: () => boolean): Promise<void> {
    await Promise.race(families)
    if (!hasSome()) {
      await Promise.all(families)
      return
    }
    const isComplete = new AbortController()
    void Promise.all(families).finally(() => isComplete.abort())
    await sleep(this.#options.clock, secondFamilyWaitMs, isComplete.signal)
  }

  /**
   * One for each look-up; it costs 50 us of CPU beside the 60 of asking. One that is kept waits the shorter the faster
   * its server has answered, at last 1.5 s for all tries together, and a name that is new to the server takes longer.
   * And all names would share its connection where answers come by TCP, with those whose answers break it. A new one
   * knows the system's name servers of this moment, too.
   */
  #newResolver(): Resolver {
    const { servers } = this.#options
    const resolver = new Resolver({ timeout: nameServerTimeoutMs, tries: nameServerTries })
    if (servers !== undefined) resolver.setServers(servers)
    return resolver
  }
}

function codeOf(error: unknown): unknown {
  return typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined
}
