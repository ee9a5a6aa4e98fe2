/**
 * Pushes events of all queues in turn, in as many lanes as suit the peer: as fast as possible, or at a steady rate. At a
 * steady rate a lane pushes what is due at once, and what becomes due during a push goes into the next one.
 */
import type { IngestSample } from '../ingest-sample.ts'
import { sampleUpdate, seededRandom } from '../sample-updates.ts'
import { steadyTicks } from '../steady-ticks.ts'
import { monotonicUs, stampText } from '../time-stamp.ts'
import type { PeerEvent, PeerProducer, PushedEvent } from './peer.ts'

const samplesKept = 1_000

export interface LaneShape {
  readonly lanes: number
  readonly batchMax: number
  readonly queues: number
}

export interface PushBounds {
  readonly durationMs: number
  readonly countMax: number
}

export class LaneProducer {
  readonly #producer: PeerProducer
  readonly #shape: LaneShape
  readonly #random = seededRandom(6)
  readonly #samples: readonly PeerEvent[]
  #next = 0
  #left = 0

  constructor(producer: PeerProducer, shape: LaneShape) {
    this.#producer = producer
    this.#shape = shape
    this.#samples = Array.from({ length: samplesKept }, (_, index) =>
      JSON.parse(sampleUpdate(this.#random, index)),
    )
  }

  async push({ durationMs, countMax }: PushBounds): Promise<IngestSample> {
    const startMs = performance.now()
    const { lanes, batchMax } = this.#shape
    this.#left = countMax
    // Each lane has a share, also of fewer events than all lanes can push at a time.
    const length = Math.min(batchMax, Math.ceil(countMax / lanes))
    const endMs = startMs + durationMs
    const pushed = await Promise.all(
      Array.from({ length: lanes }, (_, lane) => this.#pushUntil(endMs, lane, length)),
    )
    return {
      operations: pushed.reduce((sum, count) => sum + count, 0),
      seconds: (performance.now() - startMs) / 1_000,
    }
  }

  async steady(pace: {
    readonly ratePerSecond: number
    readonly durationMs: number
  }): Promise<number> {
    const { lanes, batchMax, queues } = this.#shape
    const steady = Array.from(
      { length: lanes },
      (_, lane) => new SteadyLane((events) => this.#producer.push(lane, events), batchMax),
    )
    const count = await steadyTicks(pace, (due) => {
      for (let index = 0; index < due; index++) {
        const queue = Math.floor(this.#random() * queues)
        steady[queue % lanes]?.add({ queue, event: this.#stamped() })
      }
      for (const lane of steady) lane.pushWaiting()
    })
    await Promise.all(steady.map((lane) => lane.idle()))
    return count
  }

  async #pushUntil(endMs: number, lane: number, length: number): Promise<number> {
    let count = 0
    while (performance.now() < endMs && this.#left > 0) {
      const events = this.#batch(lane, length)
      this.#left -= events.length
      await this.#producer.push(lane, events)
      count += events.length
    }
    return count
  }

  /** The queues of the lane in turn, each as often as the others. */
  #batch(lane: number, length: number): readonly PushedEvent[] {
    const { lanes, queues } = this.#shape
    const queuesOfLane = Math.ceil((queues - lane) / lanes)
    return Array.from({ length }, () => {
      const index = this.#next++
      return { queue: lane + (index % queuesOfLane) * lanes, event: this.#sample(index) }
    })
  }

  #sample(index: number): PeerEvent {
    const sample = this.#samples[index % samplesKept]
    if (sample === undefined) throw new Error('expected a sample')
    return sample
  }

  #stamped(): PeerEvent {
    const { message } = this.#sample(this.#next++)
    return { message: { ...message, text: stampText(message.text, monotonicUs()) } }
  }
}

/** Pushes what waits, one batch at a time. */
class SteadyLane {
  readonly #push: (events: readonly PushedEvent[]) => Promise<void>
  readonly #batchMax: number
  readonly #waiting: PushedEvent[] = []
  #pushing: Promise<void> | undefined

  constructor(push: (events: readonly PushedEvent[]) => Promise<void>, batchMax: number) {
    this.#push = push
    this.#batchMax = batchMax
  }

  add(event: PushedEvent): void {
    this.#waiting.push(event)
  }

  pushWaiting(): void {
    if (this.#waiting.length > 0) this.#pushing ??= this.#pushAll()
  }

  idle(): Promise<void> {
    return this.#pushing ?? Promise.resolve()
  }

  async #pushAll(): Promise<void> {
    while (this.#waiting.length > 0) await this.#push(this.#waiting.splice(0, this.#batchMax))
    this.#pushing = undefined
  }
}
