import { type Clock, systemClock } from '../../../src/kit/clock.ts'
import { AttemptLog } from '../../../src/delivery/attempts/attempt-log.ts'
import { createConnector } from '../../../src/delivery/endpoint/connector.ts'
import { Dispatcher, type DispatcherOptions } from '../../../src/delivery/dispatcher.ts'
import type { WebhookNetwork } from '../../../src/delivery/endpoint/verify.ts'
import type { WebhookSettings } from '../../../src/delivery/endpoint/connection-set.ts'
import { ArraySource } from '../kit/array-source.ts'

/** A network in which every name is this machine and every address is allowed. */
export function loopbackNetworkOf(clock: Clock): WebhookNetwork {
  return {
    lookup: async () => ['127.0.0.1'],
    judge: async (addresses) => addresses.map(() => true),
    connect: createConnector(clock),
  }
}

export const loopbackNetwork = loopbackNetworkOf(systemClock)

/** Counts as the server-wide gate does; `open` must be 0 after a stop. */
export class CountingGate {
  open = 0
  openMax = Number.POSITIVE_INFINITY
  mayOpen(): boolean {
    return this.open < this.openMax
  }
  opened(): void {
    this.open++
  }
  closed(): void {
    this.open--
  }
  mayIdle(): boolean {
    return this.open * 2 <= this.openMax
  }
  waiting = 0
  turnedAway(): void {
    this.waiting++
  }
  mustYield(): boolean {
    const isWaiting = this.waiting > 0
    this.waiting = 0
    return isWaiting
  }
}

export interface WebhookSetup {
  readonly dispatcher: Dispatcher
  readonly source: ArraySource
  readonly attempts: AttemptLog
  readonly gate: CountingGate
  readonly goneClocks: (number | undefined)[]
  goneCalls: number
}

export function setUpWebhook(
  settings: Partial<WebhookSettings> & { readonly url: string },
  options: Partial<DispatcherOptions> = {},
): WebhookSetup {
  const source = new ArraySource()
  const gate = new CountingGate()
  const attempts = new AttemptLog()
  const goneClocks: (number | undefined)[] = []
  const setup = { source, attempts, gate, goneClocks, goneCalls: 0 }
  const dispatcher = new Dispatcher({
    settings: { maxConnections: 40, ...settings },
    source,
    clock: systemClock,
    random: () => 0.5,
    network: loopbackNetwork,
    secretHeaderNames: ['X-Service-Bot-Api-Secret-Token', 'X-Telegram-Bot-Api-Secret-Token'],
    goneTimeoutMs: 23 * 3_600_000,
    serverGate: gate,
    attempts,
    onGone: () => {
      setup.goneCalls++
    },
    onGoneClock: (sinceMs) => void goneClocks.push(sinceMs),
    ...options,
  })
  return Object.assign(setup, { dispatcher })
}
