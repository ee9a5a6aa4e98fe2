/**
 * Simulates one bot with a webhook from a seed: a stormy phase in which anything can happen, a calm phase in which
 * everything left must be delivered, and the end, after which nothing may remain.
 *
 * `step` fires one event. The promises it settles must have run before the next step.
 */
import type { WebhookRecord } from '../../../src/shard/records/bot-record.ts'
import { Luck } from './luck.ts'
import { drawPlan, type NemesisKind, type Plan } from './nemesis.ts'
import { SimulatedProcess } from './simulated-process.ts'
import { noTrouble } from './simulated-queue.ts'
import { drawWeather, fairWeather, goneWeather, type Weather } from './weather.ts'
import { World } from './world.ts'

export interface SimulationOptions {
  readonly seed: number
  readonly without?: ReadonlySet<NemesisKind>
  readonly log?: ((text: string) => void) | undefined
}

/** Retry-After is an hour at most. */
const calmMsMax = 2 * 3_600_000
const stepsMax = 30_000
const settledMs = 5_000
const callMsMax = 6_000

const settings = {
  connections: [1, 1, 2, 3, 4, 5, 8, 40],
  hosts: ['one.example', 'two.example', 'three.example'],
  limits: [undefined, 0.5, 2, 10, 50, 200],
  pinned: [undefined, undefined, '198.51.101.7'],
  addresses: [
    ['93.184.216.34'],
    ['93.184.216.34', '2606:2800::1'],
    ['198.51.101.7', '10.0.0.1'],
    ['10.0.0.1', '192.168.0.1'],
  ],
}

export class Simulation {
  readonly #world: World
  readonly #luck: Luck
  readonly #plan: Plan
  #process: SimulatedProcess | undefined
  #isCalm = false
  #isOver = false
  #steps = 0

  constructor(options: SimulationOptions) {
    const { seed, without, log } = options
    this.#luck = new Luck(seed + 0xf1a)
    this.#plan = drawPlan(this.#luck)
    this.#world = new World(seed)
    const { ledger, clock } = this.#world
    if (log !== undefined) {
      ledger.log = (text) => log(`${(clock.monotonicMs() / 1_000).toFixed(3)} ${text}`)
    }
    this.#world.goneTimeoutMs = this.#plan.goneTimeoutMs
    this.#world.windowUpdatesMax = this.#plan.windowUpdatesMax
    this.#world.windowBytesMax = this.#plan.windowBytesMax
    this.#world.loadedBytesMax = this.#plan.loadedBytesMax
    this.#world.connectionsMax = this.#plan.connectionsMax
    this.#world.log(() => `plan ${JSON.stringify(this.#plan)}`)
    for (const { atMs, count } of this.#plan.bursts) clock.after(atMs, () => this.#push(count))
    for (const { atMs, kind } of this.#plan.strokes) {
      // Drawn in any case, so that leaving out one kind does not change the other strokes.
      const luck = new Luck(this.#luck.int(0, 2 ** 31))
      if (without?.has(kind) !== true) clock.after(atMs, () => this.#strike(kind, luck))
    }
    if (this.#plan.sweepMs !== undefined) this.#sweepEvery(this.#plan.sweepMs)
    clock.after(this.#plan.calmMs, () => this.#calmDown())
    this.#boot()
    this.#setWebhook(this.#luck)
  }

  get violation(): string | undefined {
    return this.#world.ledger.violation
  }

  get tallies(): ReadonlyMap<string, number> {
    return this.#world.ledger.tallies
  }

  /** Returns false when the simulation is over. */
  step(): boolean {
    const { clock, ledger } = this.#world
    const { nextMs } = clock
    if (nextMs !== undefined && nextMs > clock.monotonicMs()) this.#process?.watch?.checkRest()
    if (this.#steps++ > stepsMax) ledger.fail('it never comes to an end')
    if (nextMs === undefined && !this.#isOver) ledger.fail('nothing is to come, and it is not over')
    if (this.#isOver || ledger.violation !== undefined) return false
    clock.step()
    return true
  }

  #push(count: number): void {
    const luck = this.#luck
    if (this.#process === undefined) return
    for (let index = 0; index < count; index++) {
      const isShort = luck.chance(this.#plan.shortLived)
      this.#process.push(
        `k${luck.skewed(this.#plan.keys - 1)}`,
        isShort ? luck.int(1, 400) : 10 * 86_400,
      )
    }
    this.#process.announce()
  }

  #sweepEvery(periodMs: number): void {
    this.#world.clock.after(periodMs, () => {
      this.#process?.queue.sweep()
      if (!this.#isOver) this.#sweepEvery(periodMs)
    })
  }

  #boot(): void {
    this.#process ??= new SimulatedProcess(this.#world)
  }

  #setWebhook(luck: Luck): void {
    const ipAddress = luck.pick(settings.pinned)
    const webhook: WebhookRecord = {
      url: `https://${luck.pick(settings.hosts)}/`,
      maxConnections: luck.pick(settings.connections),
      ...(ipAddress === undefined ? {} : { ipAddress }),
    }
    this.#process?.set(webhook, luck.chance(0.15))
  }

  #strike(kind: NemesisKind, luck: Luck): void {
    if (this.#isCalm) return
    this.#world.log(() => `nemesis: ${kind}`)
    this.#world.ledger.tally(kind)
    this.#strokes[kind](luck)
  }

  readonly #strokes: Readonly<Record<NemesisKind, (luck: Luck) => void>> = {
    weather: (luck) => this.#change(drawWeather(luck)),
    'gone for long': () => this.#change(goneWeather),
    jump: (luck) => {
      const jumpMs = luck.int(1, luck.pick([1_000, 100_000, 10_000_000]))
      this.#world.clock.jump(luck.pick([-1, 1]) * jumpMs)
    },
    set: (luck) => this.#setWebhook(luck),
    delete: (luck) => this.#deleteWebhook(luck),
    pause: (luck) => this.#pause(luck),
    limit: (luck) => this.#process?.setLimit(luck.pick(settings.limits)),
    restart: (luck) => this.#restart(luck),
    crash: (luck) => this.#crash(luck),
    reads: (luck) => {
      this.#world.stored.trouble = luck.chance(0.3)
        ? noTrouble
        : { slow: luck.next(), failing: luck.pick([0, 0.3]), readMs: luck.pick([1, 50, 2_000]) }
    },
    poison: (luck) => void this.#world.poisoned.add(`k${luck.int(0, this.#plan.keys - 1)}`),
    names: (luck) => {
      this.#world.addresses = luck.pick(settings.addresses)
    },
  }

  #change(weather: Weather): void {
    this.#world.weather = weather
    this.#world.log(() => weather.name)
  }

  /** Usually the webhook is set again soon. */
  #deleteWebhook(luck: Luck): void {
    this.#process?.delete(luck.chance(0.4))
    if (luck.chance(0.9)) {
      this.#world.clock.after(luck.int(0, 4_000), () => this.#setWebhook(luck))
    }
  }

  /** Usually the bot is resumed after some time, perhaps by another stroke, and at the latest in the calm phase. */
  #pause(luck: Luck): void {
    this.#process?.setPaused(luck.chance(0.7))
    if (luck.chance(0.5)) {
      this.#world.clock.after(luck.int(0, 30_000), () => this.#process?.setPaused(false))
    }
  }

  #restart(luck: Luck): void {
    const process = this.#process
    if (process === undefined || process.isDraining) return
    process.shutDown().then(() => this.#afterClose(process, () => this.#end(process, luck)))
  }

  #crash(luck: Luck): void {
    const process = this.#process
    if (process === undefined) return
    process.crash()
    this.#end(process, luck)
  }

  #end(process: SimulatedProcess, luck: Luck): void {
    if (this.#process !== process) return
    this.#process = undefined
    this.#world.clock.after(luck.int(0, 2_000), () => this.#boot())
  }

  #calmDown(): void {
    const world = this.#world
    world.log(() => 'calm')
    this.#isCalm = true
    world.weather = fairWeather
    world.poisoned.clear()
    world.stored.trouble = noTrouble
    world.addresses = settings.addresses[0] ?? []
    this.#finish(world.clock.monotonicMs() + calmMsMax)
  }

  /** Checks every second whether everything is delivered. */
  #finish(deadlineMs: number): void {
    const { clock, ledger, stored } = this.#world
    if (clock.monotonicMs() > deadlineMs && stored.pending.length > 0) {
      ledger.fail(`${ledger.pending} updates are not delivered although the weather is fair`)
    }
    const process = this.#process
    if (process !== undefined && this.#isAtWork(process) && stored.pending.length === 0) {
      const waitMs = Math.max((process.watch?.dueMs ?? 0) - clock.monotonicMs(), 0)
      clock.after(waitMs + settledMs, () => {
        // Another key waits longer.
        if ((process.watch?.dueMs ?? 0) > clock.monotonicMs()) this.#finish(deadlineMs)
        else this.#close(process)
      })
    } else {
      clock.after(1_000, () => this.#finish(deadlineMs))
    }
  }

  /**
   * Returns whether the process has a webhook and no calls in progress; otherwise sets the webhook and resumes the bot.
   */
  #isAtWork(process: SimulatedProcess): boolean {
    if (!process.hasWebhook) this.#setWebhook(this.#luck)
    if (process.isPaused && process.calls === 0) process.setPaused(false)
    return process.hasWebhook && process.calls === 0
  }

  #close(process: SimulatedProcess): void {
    process.watch?.checkEmpty()
    const end = (): void => {
      this.#isOver = true
    }
    process
      .close()
      .then(() => this.#afterClose(process, () => this.#world.clock.after(callMsMax, end)))
  }

  /** The sockets of a dispatcher that was just replaced take a moment to close, and late calls take longer. */
  #afterClose(process: SimulatedProcess, then: () => void): void {
    this.#world.clock.after(10, () => {
      process.checkClosed()
      then()
    })
    this.#world.clock.after(callMsMax, () => process.checkAnswered())
  }
}
