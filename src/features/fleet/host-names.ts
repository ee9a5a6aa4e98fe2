/**
 * The hosts of the webhooks of one shard, each kept once, because many bots often have the same: a row has only the number of its
 * host. A host that no row has any more is forgotten.
 */

interface Host {
  /** In lower case, with a dot before it, so that each word has a sign before it. */
  readonly dotted: string
  readonly number: number
  rows: number
}

/** The number of no host. */
export const noHost = 0

export class HostNames {
  readonly #byName = new Map<string, Host>()
  readonly #byNumber = new Map<number, Host>()
  /** Numbers that were given back. */
  readonly #free: number[] = []

  /** How many different hosts are kept. */
  get size(): number {
    return this.#byName.size
  }

  /** Notes that one more row has a host, and returns its number. */
  take(name: string): number {
    const dotted = `.${name.toLowerCase()}`
    const host = this.#byName.get(dotted) ?? this.#added(dotted)
    host.rows += 1
    return host.number
  }

  /** Notes that a row has a host no more. */
  giveBack(number: number): void {
    const host = this.#byNumber.get(number)
    if (host === undefined) return
    host.rows -= 1
    if (host.rows > 0) return
    this.#byName.delete(host.dotted)
    this.#byNumber.delete(number)
    this.#free.push(number)
  }

  /** Returns the host with a number; undefined if there is none. */
  name(number: number): string | undefined {
    return this.#byNumber.get(number)?.dotted.slice(1)
  }

  /**
   * Whether a word of a host begins with a text.
   *
   * @param lower - the text in lower case
   */
  hasWordPrefix(number: number, lower: string): boolean {
    const dotted = this.#byNumber.get(number)?.dotted
    return dotted !== undefined && (dotted.includes(`.${lower}`) || dotted.includes(`-${lower}`))
  }

  #added(dotted: string): Host {
    const number = this.#free.pop() ?? this.#byName.size + 1
    const host = { dotted, number, rows: 0 }
    this.#byName.set(dotted, host)
    this.#byNumber.set(number, host)
    return host
  }
}
