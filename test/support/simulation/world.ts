/**
 * Everything outside the server or beyond the life of its processes: time, randomness, weather, the disk, and the ledger.
 */
import type { QueueSettings } from '../../../src/shard/records/bot-record.ts'
import { EventClock } from './event-clock.ts'
import { Ledger } from './ledger.ts'
import { LimitWatch } from './limit-watch.ts'
import { Luck } from './luck.ts'
import { StoredUpdates } from './simulated-queue.ts'
import { fairWeather, type Weather } from './weather.ts'

export const updateBytesMax = 1_000

export class World {
  readonly clock = new EventClock()
  readonly ledger = new Ledger(this.clock)
  readonly limit = new LimitWatch('deliveries')
  readonly openingsLimit = new LimitWatch('openings')
  /** Randomness for the world. The server has a separate source, so that neither affects the other. */
  readonly luck: Luck
  readonly serverLuck: Luck
  readonly stored: StoredUpdates
  weather: Weather = fairWeather
  /** Keys whose updates make the bot fail. */
  readonly poisoned = new Set<string>()
  /** The addresses of the host's name, and those that must not be connected to. */
  addresses: readonly string[] = ['93.184.216.34']
  readonly blocked: ReadonlySet<string> = new Set(['10.0.0.1', '192.168.0.1'])
  settings: QueueSettings = {}
  /** `--max-total-webhook-connections` of the server. */
  connectionsMax = Number.POSITIVE_INFINITY
  goneTimeoutMs: number
  /** Small limits that a seed can reach; undefined for the server's own limits. */
  windowUpdatesMax: number | undefined
  windowBytesMax: number | undefined
  loadedBytesMax: number | undefined

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
