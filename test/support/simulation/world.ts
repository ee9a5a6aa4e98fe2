/** What is outside the server, or outlives its processes: time, luck, weather, the disk, and the books kept of it all. */

import type { QueueSettings } from '../../../src/shard/bot-record.ts'
import type { AttemptPaceOptions } from '../../../src/webhook/attempt-pace.ts'
import { EventClock } from './event-clock.ts'
import { Ledger } from './ledger.ts'
import { Luck } from './luck.ts'
import { StoredUpdates } from './simulated-queue.ts'
import { fairWeather, type Weather } from './weather.ts'

export const updateBytesMax = 1_000

export class World {
  readonly clock = new EventClock()
  readonly ledger = new Ledger(this.clock)
  /** For what the world does; what the server draws is its own, so that neither disturbs the other. */
  readonly luck: Luck
  readonly serverLuck: Luck
  readonly stored: StoredUpdates
  weather: Weather = fairWeather
  /** Keys whose updates the bot chokes on. */
  readonly poisoned = new Set<string>()
  /** What the host's name stands for, and which of that may be connected to. */
  addresses: readonly string[] = ['93.184.216.34']
  readonly blocked: ReadonlySet<string> = new Set(['10.0.0.1', '192.168.0.1'])
  settings: QueueSettings = {}
  /** Of the server: `--max-total-webhook-connections`. */
  connectionsMax = Number.POSITIVE_INFINITY
  goneTimeoutMs: number
  /** Small bounds, so that a seed reaches them; undefined for the server's own. */
  windowUpdatesMax: number | undefined
  windowBytesMax: number | undefined
  pace: AttemptPaceOptions | undefined

  constructor(seed: number) {
    this.luck = new Luck(seed)
    this.serverLuck = new Luck(seed + 0x5eed)
    this.stored = new StoredUpdates(this.clock, this.ledger, this.luck)
    this.goneTimeoutMs = 23 * 3_600_000
  }

  log(text: () => string): void {
    this.ledger.log?.(text())
  }
}
