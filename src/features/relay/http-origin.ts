/**
 * Polls one origin (origin.ts) over HTTP, for all relays of a worker: a connection for each poll that waits. Connections obey
 * the rules of webhooks: each address is judged, and no redirect is followed. The paths of calls contain tokens, so no error
 * of undici is ever shown.
 */
import { setMaxListeners } from 'node:events'
import type { Socket } from 'node:net'
import type { buildConnector, Pool } from 'undici'
import type { Clock, Timer } from '../../kit/clock.ts'
import type { Surroundings } from '../../kit/surroundings.ts'
import { GrowingBody } from '../../http/growing-body.ts'
import { Semaphore } from '../../kit/semaphore.ts'
import { AnswerRefused } from '../../delivery/outgoing/answer-meter.ts'
import { meteredPool } from '../../delivery/outgoing/metered-pool.ts'
import { type ConnectTarget, connectTarget } from '../../delivery/endpoint/connector.ts'
import type { Endpoint } from '../../delivery/endpoint/endpoint.ts'
import {
  answerFaultOf,
  failureOf,
  noResponse,
  type WebhookFailure,
} from '../../delivery/attempts/failure.ts'
import { HostAddresses } from '../../delivery/endpoint/resolve.ts'
import type { WebhookNetwork } from '../../delivery/endpoint/verify.ts'
import { kib } from '../../kit/limits.ts'
import { relayAnswerBytesMax, relayPollS } from './limits.ts'
import { LargeAnswers } from './large-answers.ts'
import type { Origin, OriginAnswer, OriginFailure, OriginPoll } from './origin.ts'
import { type RawAnswer, readOriginAnswer, tooLarge } from './read-origin-answer.ts'

/** A connection to an origin may take this long, as one to a webhook. */
const relayConnectTimeoutMs = 10_000
/** An origin may answer this much later than it was asked to. Chosen: more than a slow network takes. */
const relayAnswerSlackMs = 15_000
/** An answer may pause this long. */
const relayBodyTimeoutMs = 10_000
/** An answer may take this long after its headers. Chosen: 8 MiB at a megabit a second. */
const relayReadTimeoutMs = 70_000
/** At most this many large answers are read and stored at the same time, because each may have 8 MiB. */
export const relayLargeAnswersMax = 4
/**
 * An answer up to this size waits for no other, and is read in place. Chosen: some updates; the socket reads as much in advance.
 * Measured: the dearest ones, thousands of different keys or of empty lists, take 2 ms of the event loop, and an error that is
 * all brackets 3.5 ms.
 */
const relaySmallAnswerBytesMax = 64 * kib

export class HttpOrigin implements Origin {
  readonly #clock: Clock
  readonly #network: WebhookNetwork
  readonly #pool: Pool
  readonly #target: ConnectTarget
  readonly #addresses: HostAddresses
  readonly #large = new Semaphore(relayLargeAnswersMax)
  readonly #largeAnswers: LargeAnswers
  readonly #closing = new AbortController()

  constructor(
    surroundings: Pick<Surroundings, 'clock' | 'log' | 'random'>,
    endpoint: Endpoint,
    network: WebhookNetwork,
  ) {
    const { clock, log, random } = surroundings
    this.#clock = clock
    this.#network = network
    // Each connection being opened adds a listener and removes it later; there may be many at a time.
    setMaxListeners(0, this.#closing.signal)
    this.#target = connectTarget(endpoint, undefined)
    const { origin } = endpoint
    this.#largeAnswers = new LargeAnswers({ clock, log, origin, pendingMax: relayLargeAnswersMax })
    this.#addresses = new HostAddresses({
      target: endpoint,
      ports: network,
      clock,
      random,
      onChange: () => undefined,
    })
    this.#pool = meteredPool(endpoint.origin, {
      connections: null,
      connect: (_request, done) => void this.#connect(done),
      headersTimeout: relayPollS * 1_000 + relayAnswerSlackMs,
      bodyTimeout: relayBodyTimeoutMs,
    })
  }

  async poll<Result>(
    poll: OriginPoll,
    take: (answer: OriginAnswer) => Promise<Result>,
    signal: AbortSignal,
  ): Promise<Result> {
    const reading = new Reading(this.#clock, signal, poll.waitS * 1_000 + relayAnswerSlackMs)
    let leave: (() => void) | undefined
    try {
      const answer = await this.#answerTo(poll, reading, async () => {
        await reading.pauseUntil((resolve) => {
          leave = this.#large.enter(resolve)
        })
      })
      signal.throwIfAborted()
      reading.close()
      return await take(answer)
    } finally {
      reading.close()
      leave?.()
    }
  }

  async close(): Promise<void> {
    this.#closing.abort()
    this.#addresses.close()
    await Promise.all([this.#pool.destroy(), this.#largeAnswers.close()])
  }

  async #answerTo(
    { token, offset, types, limit, waitS }: OriginPoll,
    reading: Reading,
    turn: () => Promise<void>,
  ): Promise<OriginAnswer> {
    this.#addresses.refreshIfDue(this.#clock.monotonicMs())
    try {
      const { statusCode, headers, body } = await this.#pool.request({
        method: 'POST',
        path: `/bot${token}/getUpdates`,
        headers: ['content-type', 'application/json'],
        body: JSON.stringify({ offset, limit, timeout: waitS, allowed_updates: types }),
        signal: reading.signal,
      })
      reading.begin()
      const { bytes, isWhole } = await readAnswer(body, turn)
      if (!isWhole && (limit > 1 || statusCode !== 200)) return { failure: tooLarge }
      const retryAfter = headers['retry-after']
      const raw: RawAnswer = {
        status: statusCode,
        body: bytes,
        retryAfter: typeof retryAfter === 'string' ? retryAfter : undefined,
        nowMs: this.#clock.nowMs(),
        ...(isWhole ? {} : { isCut: true }),
      }
      const isSmall = bytes.length <= relaySmallAnswerBytesMax
      return isSmall ? readOriginAnswer(raw) : await this.#largeAnswers.read(raw)
    } catch (error) {
      return { failure: reading.failureOf(error) }
    }
  }

  /** Opens a connection for the pool. Never rejects. */
  async #connect(done: buildConnector.Callback): Promise<void> {
    const { signal } = this.#closing
    let address: string | undefined
    let socket: Socket
    try {
      address = await this.#addresses.pickUntil(signal)
      const target = { target: this.#target, address, timeoutMs: relayConnectTimeoutMs }
      socket = await this.#network.connect({ ...target, signal })
    } catch (error) {
      if (address !== undefined) this.#addresses.failed(address)
      done(failureOf(error), null)
      return
    }
    this.#addresses.connected()
    done(null, socket)
  }
}

/** Limits the time of a poll, so that an origin that drips bytes holds up neither its relay nor the large answers of others. */
class Reading {
  readonly #clock: Clock
  readonly #abort = new AbortController()
  readonly #outer: AbortSignal
  #timer: Timer
  #hasBegun = false
  #isLate = false

  constructor(clock: Clock, outer: AbortSignal, headersMs: number) {
    this.#clock = clock
    this.#outer = outer
    this.#timer = clock.after(headersMs, this.#end)
    outer.addEventListener('abort', this.#stop, { once: true })
    if (outer.aborted) this.#stop()
  }

  get signal(): AbortSignal {
    return this.#abort.signal
  }

  /** Says why the poll has failed. A late answer that has begun counts as too large: a smaller one may arrive in time. */
  failureOf(error: unknown): OriginFailure {
    const failure = failureOf(error)
    if (!this.#isLate && failure.message !== noResponse) return broken(failure, this.#hasBegun)
    return this.#hasBegun ? { ...tooSlow, isTooLarge: true } : { ...tooSlow, isPassing: true }
  }

  /** The headers have arrived. */
  begin(): void {
    this.#hasBegun = true
    this.#timer.cancel()
    this.#timer = this.#clock.after(relayReadTimeoutMs, this.#end)
  }

  /** Waits for a turn, which does not count as the origin's time. Rejects if the poll is ended first. */
  async pauseUntil(start: (resolve: () => void) => void): Promise<void> {
    this.#timer.cancel()
    await new Promise<void>((resolve) => {
      this.signal.addEventListener('abort', () => resolve(), { once: true })
      start(resolve)
    })
    this.signal.throwIfAborted()
    this.begin()
  }

  close(): void {
    this.#timer.cancel()
    this.#outer.removeEventListener('abort', this.#stop)
  }

  readonly #stop = (): void => this.#abort.abort()

  readonly #end = (): void => {
    this.#isLate = true
    this.#abort.abort()
  }
}

const tooSlow: OriginFailure = { reason: 'The origin answers too slowly' }

/** @param hasBegun - whether the head of the answer has come */
function broken(failure: WebhookFailure, hasBegun: boolean): OriginFailure {
  const { cause } = failure
  if (cause instanceof AnswerRefused) return { reason: `The origin sent ${cause.message}` }
  const fault = answerFaultOf(failure)
  if (fault !== undefined) return { reason: `The origin sent what is no response: ${fault}` }
  const message = failure.message.replace(/^Webhook connection/, 'Connection')
  const what = hasBegun ? 'broke off its answer' : 'cannot be reached'
  return { reason: `The origin ${what}: ${message}`, isPassing: true }
}

interface ReadAnswer {
  readonly bytes: Buffer
  readonly isWhole: boolean
}

/**
 * Reads a body, or the beginning of one that is too large, whose connection is then closed.
 *
 * @param turn - resolves when a large one may be read. What arrives meanwhile stays in the socket.
 */
async function readAnswer(
  body: AsyncIterable<Buffer>,
  turn: () => Promise<void>,
): Promise<ReadAnswer> {
  // Not a Buffer for each chunk: one of a byte takes 400 bytes.
  const answer = new GrowingBody(relayAnswerBytesMax, () => true)
  let bytes = 0
  let isLarge = false
  for await (const chunk of body) {
    bytes += chunk.length
    answer.add(chunk.subarray(0, chunk.length - Math.max(0, bytes - relayAnswerBytesMax)))
    if (bytes > relayAnswerBytesMax) break
    if (isLarge || bytes <= relaySmallAnswerBytesMax) continue
    isLarge = true
    await turn()
  }
  return { bytes: answer.bytes(), isWhole: bytes <= relayAnswerBytesMax }
}
