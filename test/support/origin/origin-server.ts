/**
 * A fake origin: a bot API server, as far as bots use one, that keeps the rules of the reference. It records every call, and
 * can stop one at a moment that a test chooses or answer it wrongly.
 *
 *     /bot<TOKEN>/METHOD       getUpdates, setWebhook, deleteWebhook, getWebhookInfo, getMe, sendMessage, getFile, logOut, close
 *     /file/bot<TOKEN>/PATH    some bytes
 *
 * Origin starts it as a process of its own.
 */
import { once } from 'node:events'
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
} from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type Clock, sleep } from '../../../src/kit/clock.ts'
import { type Params, readParams } from '../../../src/bot-api/params.ts'
import { portOf } from '../kit/port.ts'
import type { KeyPair } from '../network/certificates.ts'
import { OriginBot, type OriginAnswer, type PollParameters, refusal } from './origin-bot.ts'
import { originFile, originMethods } from './origin-methods.ts'
import {
  chatMessage,
  drivenText,
  type OriginCall,
  type OriginControl,
  type OriginDrive,
  type OriginFault,
  type OriginGate,
} from './origin-calls.ts'

interface Registered {
  readonly botId: number
  readonly bot: OriginBot
  readonly driven: Record<number, number>
  token: string
  fault?: { readonly fault: OriginFault; times: number } | undefined
  gate?: Gate | undefined
}

interface Gate {
  readonly at: OriginGate
  readonly reached: () => void
  /** Set once a call is here. */
  release?: (how: 'go' | 'drop') => void
}

/** What is done for one call. `drop` closes the connection. */
type Outcome = OriginAnswer | 'drop' | { readonly cut: OriginAnswer }
type Fields = Omit<OriginCall, 'startMs' | 'endMs' | 'botId' | 'method' | 'status'>
type Writable<T> = { -readonly [Name in keyof T]: T[Name] }

interface Call {
  readonly method: string
  readonly params: Params
  readonly response: ServerResponse
  /** What is recorded about a poll. */
  readonly fields: Writable<Fields>
}

const timeoutSMax = 50
const updatesMax = 100
const int32 = 2 ** 31
const bodyBytesMax = 2 ** 20
export class OriginServer implements OriginControl {
  readonly #clock: Clock
  readonly #bots = new Map<number, Registered>()
  readonly #byToken = new Map<string, Registered>()
  readonly #calls: OriginCall[] = []
  #port = 0
  #nextMessageId = 1

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get port(): number {
    return this.#port
  }

  async listen(tls?: KeyPair): Promise<void> {
    const listener: RequestListener = (request, response) => {
      // A client that is killed breaks off anywhere.
      this.#serve(request, response).catch(() => response.destroy())
    }
    const server = tls === undefined ? createServer(listener) : createTlsServer(tls, listener)
    server.keepAliveTimeout = 75_000
    server.listen(0, '127.0.0.1', 4_096)
    await once(server, 'listening')
    this.#port = portOf(server)
  }

  async register(bots: Parameters<OriginControl['register']>[0]): Promise<void> {
    for (const { botId, token, firstId = 500_000_000 } of bots) {
      const registered: Registered = {
        botId,
        token,
        bot: new OriginBot(this.#clock, firstId),
        driven: {},
      }
      this.#bots.set(botId, registered)
      this.#byToken.set(token, registered)
    }
  }

  async renew(botId: number, token: string): Promise<void> {
    const registered = this.#of(botId)
    this.#byToken.delete(registered.token)
    registered.token = token
    this.#byToken.set(token, registered)
  }

  async push(botId: number, updates: readonly object[]): Promise<readonly (number | undefined)[]> {
    return this.#of(botId).bot.pushAll(updates)
  }

  async drive({ botId, chats, count, perSecond }: OriginDrive): Promise<void> {
    const { bot, driven } = this.#of(botId)
    const texts: (readonly [number, string])[] = []
    for (let round = 0; round < count; round++) {
      for (const chat of chats) {
        const number = driven[chat] ?? 0
        driven[chat] = number + 1
        texts.push([chat, drivenText(chat, number)])
      }
    }
    const messages = texts.map((each) => chatMessage(...each, this.#nextMessageId++))
    if (perSecond === undefined) {
      bot.pushAll(messages)
      return
    }
    const startMs = this.#clock.monotonicMs()
    for (const [nth, message] of messages.entries()) {
      bot.pushAll([message])
      const dueMs = startMs + ((nth + 1) / perSecond) * 1_000
      await sleep(this.#clock, dueMs - this.#clock.monotonicMs())
    }
  }

  async driven(botId: number): Promise<Readonly<Record<number, number>>> {
    return this.#of(botId).driven
  }

  async renumber(botId: number, firstId: number): Promise<void> {
    this.#of(botId).bot.queue.renumber(firstId)
  }

  async pending(botId: number): Promise<number> {
    return this.#of(botId).bot.queue.pending
  }

  async isPolled(botId: number): Promise<boolean> {
    return this.#of(botId).bot.isPolled
  }

  async waitingPolls(): Promise<number> {
    return [...this.#bots.values()].filter(({ bot }) => bot.isPolled).length
  }

  async setWebhook(botId: number, url: string): Promise<void> {
    this.#of(botId).bot.setWebhook(url, false)
  }

  async fault(botId: number, fault: OriginFault | undefined, times = Infinity): Promise<void> {
    this.#of(botId).fault = fault === undefined ? undefined : { fault, times }
  }

  reach(botId: number, at: OriginGate): Promise<void> {
    const registered = this.#of(botId)
    return new Promise((resolve) => (registered.gate = { at, reached: resolve }))
  }

  async release(botId: number, how: 'go' | 'drop'): Promise<void> {
    const registered = this.#of(botId)
    registered.gate?.release?.(how)
    registered.gate = undefined
  }

  async calls(from = 0): Promise<readonly OriginCall[]> {
    return this.#calls.slice(from)
  }

  async sent(botId: number): Promise<readonly Readonly<Record<string, unknown>>[]> {
    return this.#of(botId).bot.sent
  }

  #of(botId: number): Registered {
    const registered = this.#bots.get(botId)
    if (registered === undefined) throw new Error(`the origin has no bot ${botId}`)
    return registered
  }

  async #serve(raw: IncomingMessage, response: ServerResponse): Promise<void> {
    const startMs = this.#clock.nowMs()
    const { method, token, query } = targetOf(raw.url ?? '')
    const params = await readParams(raw, { query, bytesMax: bodyBytesMax })
    const registered = this.#byToken.get(token)
    const fields: Writable<Fields> = {}
    const outcome =
      registered === undefined
        ? refusal(401, 'Unauthorized')
        : await this.#run(registered, { response, params, method, fields })
    await respond(response, outcome)
    const status = statusOf(outcome)
    const endMs = this.#clock.nowMs()
    this.#calls.push({ startMs, endMs, botId: registered?.botId ?? 0, method, status, ...fields })
    if (fields.given !== undefined && fields.given.length > 0) passed(registered)
  }

  async #run(registered: Registered, call: Call): Promise<Outcome> {
    const { method, params } = call
    if (method === 'file') return { status: 200, body: originFile }
    if (method.toLowerCase() === 'getupdates') return this.#poll(registered, call)
    const run = originMethods.get(method.toLowerCase())
    if (run === undefined) return refusal(404, 'Not Found: method not found')
    const { botId, bot } = registered
    const result = run({ botId, bot, params, messageId: () => this.#nextMessageId++ })
    return { status: 200, body: { ok: true, result } }
  }

  async #poll(registered: Registered, { response, params, fields }: Call): Promise<Outcome> {
    const parameters = pollParameters(params)
    const { bot } = registered
    Object.assign(fields, parameters)
    const fault = takeFault(registered)
    if (fault !== undefined && fault.kind !== 'cut') return wrongOutcome(fault, response)
    const confirms = bot.queue.wouldConfirm(parameters.offset)
    if (confirms && (await held(registered, 'confirm')) === 'drop') return 'drop'
    const gone = new AbortController()
    response.once('close', () => gone.abort())
    // This confirms at once, and may then wait.
    const polled = bot.poll(parameters, gone.signal)
    if (confirms && (await held(registered, 'confirmed')) === 'drop') return 'drop'
    const { answer, confirmed, given } = await polled
    Object.assign(fields, { confirmed, given })
    if (given.length > 0 && (await held(registered, 'answer')) === 'drop') return 'drop'
    return fault === undefined ? answer : { cut: answer }
  }
}

function targetOf(url: string) {
  const [path = '', query = ''] = url.split('?')
  const [, file, token = '', method = ''] = /^\/(file\/)?bot([^/]+)\/(.*)$/.exec(path) ?? []
  return { method: file === undefined ? method : 'file', token: decodeURIComponent(token), query }
}

/** What a call gets from this fault, which does none of its work. */
async function wrongOutcome(
  fault: Exclude<OriginFault, { readonly kind: 'cut' }>,
  response: ServerResponse,
): Promise<Outcome> {
  if (fault.kind === 'refuse') return refusal(fault.status, fault.description, fault.retryAfterS)
  if (fault.kind === 'respond') return fault
  await once(response, 'close')
  return 'drop'
}

function statusOf(outcome: Outcome): number {
  if (outcome === 'drop') return 0
  return 'cut' in outcome ? outcome.cut.status : outcome.status
}

function pollParameters(params: Params): PollParameters {
  const allowed: unknown = JSON.parse(params.text('allowed_updates') ?? 'null')
  return {
    offset: params.integer('offset', { default: 0, min: -int32, max: int32 - 1 }),
    limit: params.integer('limit', { default: updatesMax, min: 1, max: updatesMax }),
    timeoutS: params.integer('timeout', { default: 0, min: 0, max: timeoutSMax }),
    allowed: Array.isArray(allowed) ? allowed.map(String) : undefined,
  }
}

function takeFault(registered: Registered): OriginFault | undefined {
  const { fault } = registered
  if (fault === undefined) return undefined
  fault.times--
  if (fault.times <= 0) registered.fault = undefined
  return fault.fault
}

/** Resolves when the test lets the call go on; immediately without a gate here. */
function held(registered: Registered, at: OriginGate): Promise<'go' | 'drop'> | 'go' {
  const { gate } = registered
  // A gate stops one call. Others pass.
  if (gate?.at !== at || gate.release !== undefined) return 'go'
  gate.reached()
  return new Promise((resolve) => (gate.release = resolve))
}

/** A response with updates was sent. */
function passed(registered: Registered | undefined): void {
  if (registered?.gate?.at === 'answered') registered.gate.reached()
}

async function respond(response: ServerResponse, outcome: Outcome): Promise<void> {
  if (outcome === 'drop') {
    response.destroy()
    return
  }
  const isCut = 'cut' in outcome
  const { status, body, headers } = isCut ? outcome.cut : outcome
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  const length = { 'Content-Length': Buffer.byteLength(text) }
  response.writeHead(status, { 'Content-Type': 'application/json', ...length, ...headers })
  if (isCut) {
    response.write(text.slice(0, text.length / 2), () => response.destroy())
    return
  }
  response.end(text)
  if (!response.destroyed) await Promise.race([once(response, 'finish'), once(response, 'close')])
}
