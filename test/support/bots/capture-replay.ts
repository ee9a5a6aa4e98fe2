/**
 * Replays one session of test/clients/captures over raw sockets and checks that the client would accept the responses.
 *
 *     as it was written   the requests on their connections, in the recorded pieces, each after the previous response
 *     byte by byte        the same, each byte as a separate write
 *     all at once         all requests in one write on one connection, the responses in order; a request that waited for
 *                         an update finds one
 */
import { version } from '../../../src/worker/own-node.ts'
import assert from 'node:assert/strict'
import type { CapturedEndpoint } from './captured-endpoint.ts'
import {
  fill,
  type Need,
  type Place,
  type ReceiverStep,
  type RequestStep,
  type Session,
  type WebhookState,
} from './captures.ts'
import { RawConnection } from '../producers/raw-http.ts'
import { meOf, type RegisteredBot, type Server } from '../server/server.ts'
import { until } from '../kit/until.ts'

export const paces = ['as it was written', 'byte by byte', 'all at once'] as const
export type Pace = (typeof paces)[number]

export interface ReplayOptions {
  readonly server: Server
  readonly session: Session
  readonly pace: Pace
  readonly bot: RegisteredBot
  /** The id of the update that is pending from the start. */
  readonly firstId: number | undefined
  /** Undefined if no webhook can be set. */
  readonly endpoint: CapturedEndpoint | undefined
}

type SentStep = Omit<RequestStep, 'needs'> & {
  readonly needs: Need | { readonly kind: 'some updates' }
}

interface Update {
  readonly update_id: number
}

interface Answer {
  readonly ok: boolean
  // oxlint-disable-next-line typescript/no-explicit-any -- a test asserts its shape by using it
  readonly result: any
}

/** More than anything takes, even on the busiest machine. */
const waitMs = 30_000
const noWebhook: WebhookState = { url: '' }

export class CaptureReplay {
  readonly #options: ReplayOptions
  readonly #place: Place
  readonly #connections = new Map<string, RawConnection>()
  readonly #unanswered: SentStep[] = []
  /** The deliveries as they must have arrived at the webhook. */
  readonly #deliveries: string[] = []
  #webhook = noWebhook
  #pushed = 1

  constructor(options: ReplayOptions) {
    this.#options = options
    const { server, bot, firstId } = options
    const ids = firstId === undefined ? {} : { update2: firstId + 1, update3: firstId + 2 }
    this.#place = { token: bot.token, host: new URL(server.botUrl).host, ...ids }
  }

  async run(): Promise<void> {
    try {
      const { session, bot, endpoint, firstId } = this.#options
      if (this.#isAtOnce && firstId !== undefined) {
        await this.#push(2)
        await this.#push(3)
      }
      for (const step of session.steps) await this.#take(step)
      await this.#settle()
      if (firstId === undefined) {
        assert.deepEqual((await endpoint?.requests(bot.botId, 0)) ?? [], this.#deliveries)
      }
    } finally {
      for (const { socket } of this.#connections.values()) socket.destroy()
    }
  }

  get #isAtOnce(): boolean {
    return this.#options.pace === 'all at once'
  }

  async #take(step: RequestStep | ReceiverStep): Promise<void> {
    if (step.kind === 'receiver') {
      await this.#settle()
      await this.#deliver(step)
      return
    }
    if (this.#isAtOnce) {
      this.#unanswered.push(atOnce(step))
      if (mustBeWaitedFor(step)) await this.#settle()
    } else {
      if (!step.isSentAtOnce) await this.#settle()
      await this.#write(step)
      this.#unanswered.push(step)
    }
  }

  /** Waits until everything that was sent has its response. */
  async #settle(): Promise<void> {
    const steps = this.#unanswered.splice(0)
    if (this.#isAtOnce) {
      const texts = steps.flatMap(({ writes }) => writes)
      this.#connection('c1').write(fill(texts.join(''), this.#place))
    }
    for (const step of steps) {
      const about = `${this.#options.session.name}, ${step.method}`
      if (step.needs.kind === 'nothing') await this.#leave(step)
      else await this.#hear(step, about)
    }
  }

  async #write(step: RequestStep): Promise<void> {
    const connection = this.#connection(step.connection)
    for (const write of step.writes.map((each) => fill(each, this.#place))) {
      const pieces =
        this.#options.pace === 'byte by byte'
          ? Array.from(Buffer.from(write), (byte) => Buffer.of(byte))
          : [write]
      for (const piece of pieces) {
        // Each piece is sent before the next is written, so that the server receives them separately.
        await new Promise((resolve) => connection.socket.write(piece, resolve))
      }
    }
  }

  #connection(name: string): RawConnection {
    const known = this.#connections.get(name)
    if (known !== undefined && !known.socket.destroyed) return known
    const connection = RawConnection.to(this.#options.server.botUrl)
    connection.socket.setNoDelay(true)
    // No poll waits this long, so a missing response ends the test, which then shows what arrived before.
    connection.socket.setTimeout(2 * waitMs, () => connection.socket.destroy())
    this.#connections.set(name, connection)
    return connection
  }

  /** The client aborts its poll, which must not affect its next one. */
  async #leave(step: SentStep): Promise<void> {
    await this.#untilPollWaits(true)
    this.#connection(step.connection).socket.destroy()
    await this.#untilPollWaits(false)
  }

  async #hear(step: SentStep, about: string): Promise<void> {
    const { needs } = step
    if (needs.kind === 'updates' && needs.isPushed) {
      await this.#untilPollWaits(true)
      await this.#push(needs.first ?? 0)
    }
    const connection = this.#connections.get(step.connection)
    assert(connection !== undefined)
    const answer = await connection.answer()
    if (isLast(step)) connection.socket.destroy()
    // What is sent before the connection has ended would be lost.
    else if (answer.headers['connection'] === 'close') await connection.ended()
    assert.equal(answer.headers['content-type'], 'application/json', about)
    const status = needs.kind === 'refusal' ? needs.status : 200
    assert.equal(answer.status, status, `${about}: ${answer.body}`)
    this.#check(step, answer.body, about)
    if (step.sets !== undefined) {
      await this.#checkState({ has_custom_certificate: false, ...step.sets }, about)
    } else if (step.method.toLowerCase() === 'deletewebhook') {
      // The update types that it set stay in effect for its polls. With all requests at once, a poll may have set
      // others by now.
      const { allowed_updates } = this.#webhook
      if (this.#isAtOnce) assert.equal((await this.#info())['url'], '', about)
      else await this.#checkState({ ...noWebhook, allowed_updates }, about)
    }
  }

  #check({ needs, reads }: SentStep, body: string, about: string): void {
    const { bot } = this.#options
    const answer: Answer = JSON.parse(body)
    switch (needs.kind) {
      case 'true': {
        const { description } = needs
        return assert.deepEqual(answer, { ok: true, result: true, description }, about)
      }
      case 'refusal': {
        const { status, description } = needs
        return assert.deepEqual(answer, { ok: false, error_code: status, description }, about)
      }
      case 'bot':
        return assert.deepEqual(answer, { ok: true, result: meOf(bot) }, about)
      case 'webhook':
        return assertState(answer.result, this.#webhook, about)
      case 'updates': {
        const list = needs.first === undefined ? '' : this.#updateText(needs.first)
        return assert.equal(body, `{"ok":true,"result":[${list}]}`, about)
      }
      case 'some updates': {
        // An update may be missing here if a later offset in the same write has confirmed it.
        const asked = Number(fill(reads['offset'] ?? '0', this.#place))
        const ids: readonly number[] = answer.result.map((each: Update) => each.update_id)
        return assert(ids.length > 0 && ids.every((id) => id >= asked), `${about}: ${body}`)
      }
      case 'nothing':
        return assert.fail(about)
    }
  }

  #updateText(nth: number): string {
    const { bot, firstId = 0 } = this.#options
    return `{"update_id":${firstId + nth - 1},${JSON.stringify(messageTo(bot, nth)).slice(1)}`
  }

  async #push(nth: number): Promise<void> {
    const { server, bot, firstId = 0 } = this.#options
    assert.equal(await server.push(bot.botId, messageTo(bot, nth)), firstId + nth - 1)
  }

  async #untilPollWaits(expected: boolean): Promise<void> {
    const { server, bot } = this.#options
    await until(async () => {
      const { body } = await server.admin('GET', `/v1/bots/${bot.botId}`)
      return body.waiting_poll === expected
    }, waitMs)
  }

  async #checkState(expected: WebhookState, about: string): Promise<void> {
    this.#webhook = JSON.parse(fill(JSON.stringify(expected), this.#place))
    assertState(await this.#info(), this.#webhook, about)
  }

  async #info(): Promise<WebhookState> {
    const { server, bot } = this.#options
    return (await server.call(bot.token, 'getWebhookInfo')).body.result
  }

  /** Pushes an update to the webhook, to which the client's own receiver responds. */
  async #deliver({ error, writes }: ReceiverStep): Promise<void> {
    const { server, session, bot, endpoint } = this.#options
    assert(endpoint !== undefined)
    endpoint.answerNext(bot.botId, writes)
    const message = messageTo(bot, ++this.#pushed)
    const id = await server.push(bot.botId, message)
    const body = `{"update_id":${id},${JSON.stringify(message).slice(1)}`
    const expected = deliveryText(String(this.#webhook['url']), secretOf(session), body)
    // An update that was refused comes again unchanged.
    const times = error === undefined ? 1 : 2
    this.#deliveries.push(...Array.from({ length: times }, () => expected))
    const requests = await endpoint.requests(bot.botId, this.#deliveries.length)
    assert.deepEqual(requests, this.#deliveries)
    await until(async () => (await this.#info())['pending_update_count'] === 0, waitMs)
    assert.equal((await this.#info())['last_error_message'], error)
  }
}

/** The n-th update of a session. Its text identifies the session for the endpoint. */
export function messageTo({ botId }: RegisteredBot, nth: number): object {
  const chat = { id: 42, type: 'private', first_name: 'Änne' }
  return { message: { message_id: nth, date: 1_700_000_000, chat, text: `${botId}/${nth}` } }
}

/** A delivery as it must be on the wire, byte for byte. */
export function deliveryText(url: string, secret: string | undefined, body: string): string {
  const { host, pathname, search } = new URL(url)
  const names = ['X-Service-Bot-Api-Secret-Token', 'X-Telegram-Bot-Api-Secret-Token']
  return [
    `POST ${pathname}${search} HTTP/1.1`,
    `host: ${host}`,
    'connection: keep-alive',
    'Content-Type: application/json',
    ...(secret === undefined ? [] : names.map((name) => `${name}: ${secret}`)),
    `User-Agent: Postbote/${version}`,
    `content-length: ${Buffer.byteLength(body)}`,
    '',
    body,
  ].join('\r\n')
}

/** The step on one connection, with all updates pending from the start. */
function atOnce(step: RequestStep): SentStep {
  const isPoll = step.needs.kind === 'updates' || step.needs.kind === 'nothing'
  return { ...step, connection: 'c1', needs: isPoll ? { kind: 'some updates' } : step.needs }
}

/**
 * Whether nothing may follow this request in the same write.
 *
 * This is so for a request that ends its connection, for a setWebhook, whose verification the next call would end, and
 * for an offer of another protocol: the server ends a connection that sends more before the response to the offer.
 * (Clients wait, to learn whether their offer is accepted.)
 */
function mustBeWaitedFor(step: RequestStep): boolean {
  return isLast(step) || step.sets !== undefined || /^upgrade:/im.test(step.writes.join(''))
}

/** Whether the client closes the connection after the response. */
function isLast({ writes }: SentStep): boolean {
  return /^connection:.*\bclose\b/im.test(writes.join(''))
}

function secretOf({ steps }: Session): string | undefined {
  return steps.filter((step) => step.kind === 'request').findLast(({ sets }) => sets !== undefined)
    ?.reads['secret_token']
}

function assertState(info: WebhookState, expected: WebhookState, about: string): void {
  const { url, has_custom_certificate, max_connections, allowed_updates } = info
  const all = { url, has_custom_certificate, max_connections, allowed_updates }
  const absent = {
    has_custom_certificate: false,
    max_connections: undefined,
    allowed_updates: undefined,
  }
  assert.deepEqual(all, { ...absent, ...expected }, about)
}
