/**
 * Looks up the names of webhooks without blocking a thread. getaddrinfo, which Node's `lookup` uses, occupies one of a
 * few threads as long as a name server is silent, so the names of some bots would block those of all others. (Measured
 * with 300 silent names: no other setWebhook succeeded for over a minute.)
 *
 *     the hosts file --> name servers, both families in parallel --no such name--> getaddrinfo, if local names count
 */
import { lookup } from 'node:dns'
import { Resolver } from 'node:dns/promises'
import { readFile } from 'node:fs/promises'
import { type Clock, sleep } from '../../kit/clock.ts'
import { PerTurn } from '../../kit/per-turn.ts'
import { isPlainAddress } from '../../http/ip-address.ts'
import { codeOf } from '../attempts/failure.ts'

/** Returns all addresses of a name. Rejects with an error whose code is ENOTFOUND or EAI_AGAIN. */
export type HostLookup = (host: string) => Promise<readonly string[]>

/** Reads /etc/hosts. */
export function readHostsFile(): Promise<string> {
  return readFile('/etc/hosts', 'utf8').catch(() => '')
}

/** Resolves by the system's own rules: search domains and sources other than DNS. Blocks a thread. */
export const systemLookup: HostLookup = (host) =>
  new Promise((resolve, reject) => {
    lookup(host, { all: true, order: 'verbatim' }, (error, found) => {
      if (error === null) resolve(found.map((one) => one.address))
      else reject(error)
    })
  })

/**
 * Creates the look-up of a worker.
 *
 * @param readHosts - returns the text of the hosts file
 * @param local - resolves names that no name server knows; undefined if such names do not count
 * @param servers - replaces the system's name servers in tests
 */
export function createHostLookup(
  clock: Clock,
  readHosts: () => Promise<string>,
  local?: HostLookup,
  servers?: readonly string[],
): HostLookup {
  const nameServers = new NameServers(clock, servers)
  return sharedLookup(async (host) => {
    const listed = addressesInHosts(await readHosts(), host)
    if (listed.length > 0) return listed
    try {
      return await nameServers.addressesOf(host)
    } catch (error) {
      if (local === undefined || !isNotFound(error)) throw error
      return local(host)
    }
  })
}

/**
 * Shares one look-up among all callers that ask for the same name, because hundreds of bots may use one name whose server
 * is slow.
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

/** Finds a host in a file like /etc/hosts, which has an address and its names in each line. */
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

/** A failed look-up with the code that getaddrinfo would return. */
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

/** A name server has denied that the name exists. All other codes mean that it was silent or failed. */
const noSuchName: ReadonlySet<string> = new Set(['ENOTFOUND', 'ENODATA'])

/** A name server has this long for its first response, and twice as long after each further attempt. */
const nameServerTimeoutMs = 1_000
/**
 * A name server is asked this often: with the times above a look-up takes 6 to 8 s at most, so that one lost datagram
 * does not fail it.
 */
const nameServerTries = 3
/**
 * This many names are looked up together: their 64 datagrams fit into any socket's buffer. Of 600 sent together most were
 * lost.
 */
const lookupsPerTurnMax = 32
/** The next look-ups start after this time, so that 10,000 names take 6 s. */
const lookupTurnMs = 20
/**
 * When the addresses of one family (IPv4 or IPv6) are known, those of the other are waited for this long: as long as a
 * name server's first attempt.
 */
const secondFamilyWaitMs = 1_000

class NameServers {
  readonly #clock: Clock
  readonly #servers: readonly string[] | undefined
  /** What a name server's socket cannot take at once is lost, and asked again late. */
  readonly #turns: PerTurn

  constructor(clock: Clock, servers: readonly string[] | undefined) {
    this.#clock = clock
    this.#servers = servers
    this.#turns = new PerTurn(lookupsPerTurnMax, (end) => void clock.after(lookupTurnMs, end))
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

  /** Waits for both families. Once one family has addresses, it waits only a short time for the other. */
  async #bothOrEnough(families: readonly Promise<void>[], hasSome: () => boolean): Promise<void> {
    await Promise.race(families)
    if (!hasSome()) {
      await Promise.all(families)
      return
    }
    const isComplete = new AbortController()
    void Promise.all(families).finally(() => isComplete.abort())
    await sleep(this.#clock, secondFamilyWaitMs, isComplete.signal)
  }

  /**
   * Creates a resolver for each look-up. That costs 50 us of CPU in addition to the 60 us of the query. A resolver that
   * is kept reduces its timeouts as its server answers faster, finally to 1.5 s for all tries together, and a name that
   * is new to the server takes longer. All names would also share its connection if responses come over TCP, including
   * those whose responses break it. A new resolver also knows the current name servers of the system.
   */
  #newResolver(): Resolver {
    const servers = this.#servers
    const resolver = new Resolver({ timeout: nameServerTimeoutMs, tries: nameServerTries })
    if (servers !== undefined) resolver.setServers(servers)
    return resolver
  }
}
