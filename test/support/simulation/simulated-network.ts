/** Simulated look-ups, address judgments and connection openings; the weather decides their results. */
import type { Socket } from 'node:net'
import { WebhookFailure } from '../../../src/delivery/attempts/failure.ts'
import type { WebhookNetwork } from '../../../src/delivery/endpoint/verify.ts'
import type { ConnectRequest } from '../../../src/delivery/endpoint/connector.ts'
import type { ProcessClock } from './event-clock.ts'
import { drawMs } from './weather.ts'
import type { World } from './world.ts'

export class SimulatedNetwork implements WebhookNetwork {
  readonly #world: World
  readonly #clock: ProcessClock
  readonly #judged = new Set<string>()
  /** Openings and look-ups that have not ended. */
  pending = 0

  constructor(world: World, clock: ProcessClock) {
    this.#world = world
    this.#clock = clock
  }

  readonly lookup = async (): Promise<readonly string[]> => {
    const { luck, weather } = this.#world
    const fails = luck.chance(weather.lookupFails)
    await this.#after(drawMs(luck, weather.lookupMs))
    if (fails) throw Object.assign(new Error('no such name'), { code: 'ENOTFOUND' })
    return this.#world.addresses
  }

  readonly judge = async (addresses: readonly string[]): Promise<readonly boolean[]> => {
    await this.#after(1)
    return addresses.map((address) => {
      const isAllowed = !this.#world.blocked.has(address)
      if (isAllowed) this.#judged.add(address)
      return isAllowed
    })
  }

  readonly connect = (request: ConnectRequest): Promise<Socket> => {
    const { luck, weather, ledger } = this.#world
    const { address, signal, timeoutMs } = request
    if (!this.#judged.has(address)) ledger.fail(`connects to ${address}, which nobody has judged`)
    const hangs = luck.chance(weather.openHangs)
    const fails = luck.chance(weather.openFails)
    const afterMs = hangs ? timeoutMs : Math.min(drawMs(luck, weather.openMs), timeoutMs)
    this.pending++
    return new Promise((resolve, reject) => {
      const end = (failure?: WebhookFailure): void => {
        timer.cancel()
        signal.removeEventListener('abort', abort)
        this.pending--
        if (failure === undefined) resolve(simulatedSocket)
        else reject(failure)
      }
      const abort = (): void => end(new WebhookFailure('Connection aborted'))
      const timer = this.#clock.fromOutside(afterMs, () => {
        if (afterMs >= timeoutMs) end(new WebhookFailure('Connection timed out', 'timed_out'))
        else end(fails ? new WebhookFailure('Connection refused') : undefined)
      })
      signal.addEventListener('abort', abort)
      if (signal.aborted) abort()
    })
  }

  #after(delayMs: number): Promise<void> {
    return new Promise((resolve) => void this.#clock.fromOutside(delayMs, resolve))
  }
}

/** Simulated connections never use their socket. */
const simulatedSocket = {
  destroy: () => undefined,
  destroySoon: () => undefined,
} as unknown as Socket
