/**
 * Replaces `Connection`, including the socket, the network and the endpoint: the weather decides what happens to each
 * delivery. It calls its owner in the same way and in the same order as a real connection.
 */
import type { Timer } from '../../../src/kit/clock.ts'
import type { Connection, ConnectionOptions } from '../../../src/delivery/endpoint/connection.ts'
import { WebhookFailure } from '../../../src/delivery/attempts/failure.ts'
import type { Lane } from '../../../src/delivery/lanes/lane.ts'
import { type Answer, drawAnswer, drawMs, expectedRetryAfterMs, isAbort } from './weather.ts'
import type { World } from './world.ts'

type Port = Pick<
  Connection,
  | 'address'
  | 'isRetired'
  | 'status'
  | 'retryAfter'
  | 'deliveryOrder'
  | 'startedMs'
  | 'isIdle'
  | 'isUsable'
  | 'hasEndedUnanswered'
  | 'send'
  | 'destroy'
>

/** Watches the connections of one dispatcher. */
export interface ConnectionWatch {
  connected(connection: SimulatedConnection): void
  sending(connection: SimulatedConnection, updateId: number): void
  answering(status: number): void
  /** The dispatcher has processed the response. */
  answered(): void
  disconnected(): void
}

export class SimulatedConnection implements Port {
  readonly address: string
  isRetired = false
  status = 0
  retryAfter: string | undefined
  deliveryOrder: string | undefined
  startedMs = 0
  isDestroyed = false
  readonly #options: ConnectionOptions
  readonly #world: World
  readonly #watch: ConnectionWatch
  #lane: Lane | undefined
  #updateId = 0
  #isBroken = false
  #answers = 0
  hasEndedUnanswered = false
  #timer: Timer | undefined
  #closing: Promise<void> | undefined

  constructor(options: ConnectionOptions, world: World, watch: ConnectionWatch) {
    this.#options = options
    this.#world = world
    this.#watch = watch
    this.address = options.address
    watch.connected(this)
    this.#idle()
  }

  /** The type that its owner expects. */
  asConnection(): Connection {
    return this as unknown as Connection
  }

  get isIdle(): boolean {
    return this.#lane === undefined
  }

  get isUsable(): boolean {
    return !this.#isBroken && !this.isRetired && !this.isDestroyed
  }

  send(lane: Lane, body: Buffer): void {
    const { ledger, luck, weather, poisoned, clock } = this.#world
    this.#timer?.cancel()
    const updateId = Number(/^\{"update_id":(\d+)\}$/.exec(body.toString())?.[1])
    if (updateId !== lane.first?.updateId)
      ledger.fail(`${lane.first?.updateId} sent as ${updateId}`)
    if (this.#lane !== undefined) ledger.fail('two deliveries on one connection')
    if (!this.isUsable) ledger.fail('a delivery on a connection that is over')
    this.#lane = lane
    this.#updateId = updateId
    this.status = 0
    this.retryAfter = undefined
    this.deliveryOrder = undefined
    this.startedMs = clock.monotonicMs()
    this.#watch.sending(this, updateId)
    const drawn = drawAnswer(luck, weather, clock.wallMs())
    const isPoison = poisoned.has(lane.key) && drawn.kind === 'answer'
    this.#expect(isPoison ? { ...drawn, status: 500 } : drawn)
  }

  destroy(): Promise<void> {
    this.#land()
    this.isDestroyed = true
    this.#timer?.cancel()
    this.#closing ??= new Promise((resolve) => {
      const { clock, luck } = this.#world
      clock.after(drawMs(luck, 1), () => {
        this.#watch.disconnected()
        resolve()
      })
    })
    return this.#closing
  }

  #expect(answer: Answer): void {
    const { clock, responseTimeoutMs } = this.#options
    switch (answer.kind) {
      case 'answer':
        this.#timer = clock.after(Math.min(answer.afterMs, responseTimeoutMs), () => {
          if (answer.afterMs >= responseTimeoutMs) this.#timeOut()
          else this.#answer(answer)
        })
        break
      case 'reset':
        this.#timer = clock.after(answer.afterMs, () => {
          this.hasEndedUnanswered = this.#answers > 0
          this.#break(new WebhookFailure('Connection reset by peer'))
        })
        break
      case 'silent':
        this.#timer = clock.after(responseTimeoutMs, () => this.#timeOut())
        break
      case 'notSent':
        if (answer.afterMs === undefined) this.#notSent()
        else this.#timer = clock.after(answer.afterMs, () => this.#notSent())
    }
  }

  #answer(answer: Answer & { kind: 'answer' }): void {
    const updateId = this.#updateId
    const lane = this.#land()
    if (lane === undefined) return
    const { ledger, clock } = this.#world
    const { status, retryAfter, order } = answer
    this.#world.log(() => `answer ${status} to ${updateId}, Retry-After ${retryAfter}, ${order}`)
    this.status = status
    this.retryAfter = retryAfter
    this.deliveryOrder = order
    this.#isBroken = answer.closes
    const isSuccess = status >= 200 && status < 300
    const wish = isSuccess ? undefined : expectedRetryAfterMs(retryAfter, clock.wallMs())
    ledger.answered(updateId, isSuccess, { retryAfterMs: wish, isAborted: isAbort(order) })
    this.#answers++
    this.#watch.answering(status)
    if (!answer.closes) this.#idle()
    this.#options.owner.answered(this.asConnection(), lane)
    this.#watch.answered()
  }

  #timeOut(): void {
    this.#break(new WebhookFailure('Connection timed out', 'timed_out'))
  }

  #break(failure: WebhookFailure): void {
    const lane = this.#land()
    this.#isBroken = true
    this.#world.log(() => `${failure.message} for ${this.#updateId}`)
    if (lane !== undefined) this.#options.owner.failed(this.asConnection(), lane, failure)
  }

  #notSent(): void {
    const lane = this.#land()
    this.#isBroken = true
    this.#world.log(() => `not sent: ${this.#updateId}`)
    if (lane !== undefined) this.#options.owner.notSent(this.asConnection(), lane)
  }

  #land(): Lane | undefined {
    const lane = this.#lane
    this.#lane = undefined
    if (lane !== undefined) this.#world.ledger.landed(this.#updateId)
    return lane
  }

  /** The other side closes an idle connection after some time. */
  #idle(): void {
    const { luck, weather } = this.#world
    this.#timer?.cancel()
    const idleMs = Math.min(drawMs(luck, weather.idleMs), this.#options.keepAliveMs)
    this.#timer = this.#options.clock.after(idleMs, () => {
      if (this.#lane !== undefined || this.isDestroyed) return
      this.#isBroken = true
      this.#options.owner.lost(this.asConnection())
    })
  }
}
