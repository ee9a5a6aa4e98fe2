import { type ClientPresence, type PollReply, Poller } from '../../../src/bots/poller.ts'
import { RefusalPacer } from '../../../src/admission/refusal-pacer.ts'
import { PostboteError } from '../../../src/kit/errors.ts'
import { QueueLife, type QueueLifeOptions } from '../queue/queue-life.ts'
import type { AllowedTypes } from '../../../src/queue/allowed-updates.ts'
import type { PollConflict } from '../../../src/queue/poll.ts'

/** A poller over a real queue. It logs the outcome of each call with its time: ids, or the error. */
export class Polls {
  readonly life: QueueLife
  readonly poller: Poller
  readonly log: string[] = []
  readonly types: AllowedTypes[] = []
  readonly pacer: RefusalPacer
  readonly conflicts: PollConflict[] = []
  isWebhookActive = false
  takesOver = false
  tokenEndsInMs = Infinity
  isLeaseValid = true
  settling: Promise<void> | undefined
  #startMs: number

  constructor(life: QueueLife) {
    this.life = life
    this.#startMs = life.clock.monotonicMs()
    this.pacer = new RefusalPacer(life.clock)
    this.poller = new Poller({
      queue: life.queue,
      clock: life.clock,
      counters: life.counters,
      pacer: this.pacer,
      isWebhookActive: () => this.isWebhookActive,
      takesOver: () => this.takesOver,
      tokenEndsInMs: () => this.tokenEndsInMs,
      lease: { isValid: () => this.isLeaseValid },
      refused: (rule) => this.conflicts.push(rule),
      setAllowedTypes: (types) => {
        this.types.push(types)
        return this.settling
      },
    })
    const { onCommitted } = life.life
    life.life.onCommitted = (operations) => {
      onCommitted(operations)
      this.poller.available()
    }
  }

  static async open(options: QueueLifeOptions = {}): Promise<Polls> {
    return new Polls(await QueueLife.open(options))
  }

  call(
    name: string,
    given: {
      readonly offset?: number
      readonly limit?: number
      readonly timeoutMs?: number
      readonly allowedTypes?: number
    } = {},
    presence: ClientPresence = { onGone: undefined },
  ): void {
    const request = { offset: 0, limit: 100, timeoutMs: 0, allowedTypes: undefined, ...given }
    const answer = this.poller.poll(request, presence)
    if (answer instanceof Promise) {
      answer.then(
        (page) => this.#note(name, page),
        (error: unknown) => this.#note(name, error),
      )
    } else {
      this.#note(name, answer)
    }
  }

  #note(name: string, outcome: unknown): void {
    const text = Array.isArray(outcome)
      ? `[${(outcome as PollReply).map(({ updateId }) => updateId - first).join(' ')}]`
      : outcome instanceof PostboteError
        ? outcome.code
        : String(outcome)
    const atMs = Math.round(this.life.clock.monotonicMs() - this.#startMs)
    this.log.push(`${name}: ${text} at ${atMs}`)
  }

  advance(byMs: number): Promise<void> {
    return this.life.clock.advance(byMs)
  }
}

/** The first id, as the queue's `random` determines it. */
export const first = 2_000_001 + Math.floor(0.5 * (2 ** 27 - 1 - 2_000_001 + 1))
