/**
 * The load balancer between clients and nodes, as clients see it: it picks a node at random among those whose health check
 * (`/readyz`) succeeded. A node that responds and is not ready is picked only if no other one is ready. One that does not
 * respond twice in a row is taken out of the list, and the requests that wait for it are cut. If none responds, each is tried.
 */
import { Agent } from 'node:http'
import { type Answer, type Call, send, type Server } from '../support/server/server.ts'
import type { Luck } from '../support/simulation/luck.ts'
import { wait } from '../support/server/database.ts'

const checkPeriodMs = 200
/** A busy machine takes a while, and a frozen node should not hold requests for longer than a take-over takes. */
const checkMsMax = 600
const failuresMax = 2

type Health = 'ready' | 'unready' | 'silent'

/** A node in the list. */
export class Seat {
  readonly name: string
  readonly server: Server
  health: Health = 'ready'
  #failures = 0
  #cut = new AbortController()
  #agent = new Agent({ keepAlive: true })

  constructor(name: string, server: Server) {
    this.name = name
    this.server = server
  }

  /** Aborted when the node is taken out of the list. */
  get cut(): AbortSignal {
    return this.#cut.signal
  }

  /** Sends a request on a connection that is kept. Rejects if it takes too long or is cut. */
  send(call: Call, timeMsMax: number): Promise<Answer> {
    const signal = AbortSignal.any([this.cut, AbortSignal.timeout(timeMsMax)])
    return send({ ...call, signal, agent: this.#agent })
  }

  /** Calls the private API with the admin key. */
  admin(call: Call, timeMsMax: number): Promise<Answer> {
    const { url, headers, ...rest } = call
    const { key, privateUrl } = this.server
    const authorized = { authorization: `Bearer ${key}`, ...headers }
    return this.send({ ...rest, url: privateUrl + url, headers: authorized }, timeMsMax)
  }

  async check(): Promise<void> {
    const url = `${this.server.privateUrl}/readyz`
    try {
      const signal = AbortSignal.timeout(checkMsMax)
      const { status } = await send({ method: 'GET', url, signal })
      this.#failures = 0
      this.health = status === 200 ? 'ready' : 'unready'
    } catch {
      this.#failures++
      if (this.#failures >= failuresMax && this.health !== 'silent') this.leave()
    }
  }

  /** Takes the node out of the list. */
  leave(): void {
    this.health = 'silent'
    this.#cut.abort()
    this.#agent.destroy()
    this.#cut = new AbortController()
    this.#agent = new Agent({ keepAlive: true })
  }
}

export class Balancer {
  readonly #luck: Luck
  readonly #seats = new Map<string, Seat>()
  readonly #running: Promise<void>
  #isClosed = false

  constructor(luck: Luck) {
    this.#luck = luck
    this.#running = this.#checkAll()
  }

  /** Takes a node into the list, also in place of an earlier one of this name. */
  add(name: string, server: Server): void {
    this.#seats.get(name)?.leave()
    this.#seats.set(name, new Seat(name, server))
  }

  remove(name: string): void {
    this.#seats.get(name)?.leave()
    this.#seats.delete(name)
  }

  isReady(name: string): boolean {
    return this.#seats.get(name)?.health === 'ready'
  }

  /** Returns a node at random; undefined if there is none. */
  pick(): Seat | undefined {
    const seats = [...this.#seats.values()]
    const ready = seats.filter(({ health }) => health === 'ready')
    const unready = seats.filter(({ health }) => health === 'unready')
    const usable = [ready, unready, seats].find(({ length }) => length > 0)
    return usable === undefined ? undefined : this.#luck.pick(usable)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    for (const seat of this.#seats.values()) seat.leave()
    await this.#running
  }

  async #checkAll(): Promise<void> {
    while (!this.#isClosed) {
      await Promise.all([
        wait(checkPeriodMs),
        ...Array.from(this.#seats.values(), (each) => each.check()),
      ])
    }
  }
}
