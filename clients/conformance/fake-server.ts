/**
 * A server that speaks the part of the private API that clients use, and fails as a scenario says.
 *
 * It keeps what was stored, in order, with its keys, and counts attempts, connections and pairs without a result.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { FakeShards } from './fake-shards.ts'
import { FakeStream, fixedLines, refusalText, writeBody } from './fake-stream.ts'
import { newBot } from './job.ts'
import { StoredPushes } from './stored-pushes.ts'
import type { Action, Refusal, RequestAction, Scenario } from './scenario.ts'
import { wireFields } from './wire-fields.ts'

/** A raw answer is followed by the end of its connection after this time. */
const rawMs = 20

/** What a fake server needs of a scenario and of the job. */
export interface FakeServerOptions {
  readonly scenario: Scenario
  readonly bots: readonly number[]
  readonly count: number
  readonly key: string
}

/** A running fake server. */
export class FakeServer {
  readonly pushes: StoredPushes
  readonly shards: FakeShards
  readonly #options: FakeServerOptions
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  readonly #callAttempts = new Map<string, number>()
  #requests = 0
  #downUntilMs = 0
  /** When a request that was refused with Retry-After may come again, by its target. */
  readonly #nextRequestMs = new Map<string, number>()
  /** The largest number of connections at a time. */
  connectionsMax = 0

  /** What the client did and must not do, in words. */
  get complaints(): string[] {
    return this.pushes.complaints
  }

  get scenario(): Scenario {
    return this.#options.scenario
  }

  /** Prepares a server; `start` opens its port. */
  constructor(options: FakeServerOptions) {
    this.#options = options
    this.pushes = new StoredPushes(options)
    this.shards = new FakeShards(options.scenario, this.pushes.complaints)
    this.#server = createServer((request, response) => void this.#handle(request, response))
    this.#server.on('connection', (socket) => this.#onConnection(socket))
    this.#server.requestTimeout = 0
  }

  /** Opens a free port of the loopback interface, and returns the URL. */
  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
    const { port } = this.#server.address() as AddressInfo
    return `http://127.0.0.1:${port}`
  }

  /** Ends all connections and frees the port. */
  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  /** How often a call of mode `calls` came. */
  attemptsOfCall(call: string): number {
    return this.#callAttempts.get(call) ?? 0
  }

  /** Resets all connections, and for a time every new one, as if the process were killed. */
  goDown(ms: number): void {
    this.#downUntilMs = performance.now() + ms
    for (const socket of this.#sockets) {
      // Node.js never closes a connection that is reset while it ends.
      if (socket.writableEnded) socket.destroy()
      else socket.resetAndDestroy()
    }
  }

  #onConnection(socket: Socket): void {
    socket.on('error', () => undefined)
    if (performance.now() < this.#downUntilMs) {
      socket.resetAndDestroy()
      return
    }
    this.#sockets.add(socket)
    this.connectionsMax = Math.max(this.connectionsMax, this.#sockets.size)
    socket.on('close', () => this.#sockets.delete(socket))
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    request.on('error', () => undefined)
    response.on('error', () => undefined)
    this.#checkHead(request)
    const { method = '', url = '' } = request
    if (`${method} ${url}` === 'GET /v1/shards') {
      this.shards.answer(response)
      return
    }
    const [isStream, shard] = /^\/v1\/updates(?:\?shard=(.*))?$/.exec(url) ?? []
    this.#requests += 1
    const refusal = this.scenario.requestAction(this.#requests, shard)
    if (refusal !== undefined) this.#refuseRequest(request, response, refusal)
    else if (isStream !== undefined) new FakeStream(response, shard, this).start()
    else if (!this.scenario.isStalled) await this.#single(request, response)
  }

  async #single(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const text = await textOf(request)
    if (text === undefined) return
    const { method = '', url = '' } = request
    const [, bot] = /^\/v1\/bots\/(\d+)\/updates(?:\?|$)/.exec(url) ?? []
    if (method === 'POST' && bot !== undefined) this.#push(Number(bot), text, response)
    else this.#call(`${method} ${url}`, text, response)
  }

  #checkHead({ headers, url = '' }: IncomingMessage): void {
    if (headers.authorization !== `Bearer ${this.#options.key}`) {
      this.complaints.push('a request without the key of the job')
    }
    if (performance.now() < (this.#nextRequestMs.get(url) ?? 0)) {
      this.complaints.push('a request before Retry-After')
    }
  }

  /** Complains if a job gives all options of a push, and not all of them came, or others. */
  checkOptions(names: readonly string[], expected: readonly string[]): void {
    if (this.scenario.job.options === undefined) return
    this.#compare('a push', names, expected)
  }

  #compare(what: string, names: readonly string[], expected: readonly string[]): void {
    const [came, table] = [names.toSorted().join(), expected.join()]
    if (came !== table) this.complaints.push(`${what} came with ${came}, expected ${table}`)
  }

  #refuseRequest(request: IncomingMessage, response: ServerResponse, action: RequestAction): void {
    if ('raw' in action) {
      request.resume()
      request.socket.write(action.raw, 'latin1')
      // Not at once: what the client is still sending would reset the connection before it has read the answer.
      setTimeout(() => request.socket.end(), rawMs)
      return
    }
    request.resume()
    if ('html' in action) {
      response.writeHead(action.status, { 'content-type': 'text/html' }).end(action.html)
      return
    }
    if (action.retryAfterS !== undefined) {
      const { url = '' } = request
      this.#nextRequestMs.set(url, performance.now() + action.retryAfterS * 1_000)
    }
    sendRefusal(response, action)
  }

  #push(bot: number, text: string, response: ServerResponse): void {
    const { headers, url = '' } = response.req
    const key = headers['idempotency-key']
    const given = wireFields.push.filter((name) => name in headers)
    const query = [...new URL(url, 'http://server').searchParams.keys()]
    this.checkOptions([...query, ...given], wireFields.push)
    const push = this.pushes.read(bot, text, typeof key === 'string' ? key : undefined)
    if (push === undefined) {
      this.complaints.push(`a push that no job asks for: ${text.slice(0, 200)}`)
      sendRefusal(response, { code: 'BAD_UPDATE', status: 400 })
      return
    }
    if (push.isEarly) this.complaints.push('a push before Retry-After')
    const { resultDelayMs } = this.scenario
    const act = (): void => this.#act(push.action, response, () => this.pushes.take(push))
    if (resultDelayMs > 0) setTimeout(act, resultDelayMs)
    else act()
  }

  /** Does what an action says with a single push or a call, which `carryOut` stores. */
  #act(action: Action, response: ServerResponse, carryOut: () => string): void {
    switch (action.kind) {
      case 'store':
      case 'end':
        response.writeHead(200, { 'content-type': 'application/json' })
        writeBody(response, carryOut(), this.scenario)
        response.end()
        break
      case 'double':
        response.socket?.write(twice(carryOut()))
        break
      case 'filter':
      case 'garble':
        response.writeHead(200).end(fixedLines[action.kind])
        break
      case 'refuse':
        if (action.isStored === true) carryOut()
        sendRefusal(response, action)
        break
      case 'cut':
        if (action.isStored) carryOut()
        this.#cut(response, action.downMs)
        break
      case 'ignore':
        break
    }
  }

  #cut(response: ServerResponse, downMs: number | undefined): void {
    if (downMs === undefined) response.destroy()
    else this.goDown(downMs)
  }

  #call(call: string, text: string, response: ServerResponse): void {
    const [bot = 0] = this.#options.bots
    const known = callsOf(bot)[call]
    if (known === undefined) {
      this.complaints.push(`a call that no job asks for: ${call}`)
      sendRefusal(response, { code: 'NOT_FOUND', status: 404 })
      return
    }
    const fields = Object.keys(text === '' ? {} : JSON.parse(text))
    this.#compare(known.name, fields, wireFields[known.name])
    const attempt = this.attemptsOfCall(known.name) + 1
    this.#callAttempts.set(known.name, attempt)
    const action = this.scenario.callAction(known.name, attempt)
    this.#act(action, response, () => known.answer)
  }
}

type CallName = 'createBot' | 'getBot' | 'rotateToken' | 'removeBot'

function callsOf(
  bot: number,
): Readonly<Record<string, { readonly name: CallName; readonly answer: string }>> {
  const madeBot = `{"bot_id":${newBot.botId},"token":"${newBot.botId}:made"}`
  const state = { bot_id: bot, first_name: 'Echo', username: 'echo_bot', mode: 'polling' }
  return {
    'POST /v1/bots': { name: 'createBot', answer: madeBot },
    [`GET /v1/bots/${bot}`]: { name: 'getBot', answer: JSON.stringify({ ...state, pending: 3 }) },
    [`POST /v1/bots/${bot}/token`]: {
      name: 'rotateToken',
      answer: `{"bot_id":${bot},"token":"${bot}:next"}`,
    },
    [`DELETE /v1/bots/${bot}`]: { name: 'removeBot', answer: '{}' },
  }
}

function sendRefusal(
  response: ServerResponse,
  { code, status, retryAfterS, message }: Refusal,
): void {
  const retryAfter = retryAfterS === undefined ? {} : { 'retry-after': `${retryAfterS}` }
  response
    .writeHead(status, { 'content-type': 'application/json', ...retryAfter })
    .end(refusalText(code, message))
}

/** Returns a response twice, as if the second one were that of the next request. */
function twice(text: string): string {
  return `HTTP/1.1 200 OK\r\ncontent-length: ${text.length}\r\n\r\n${text}`.repeat(2)
}

/** Returns undefined if the connection broke. */
async function textOf(request: IncomingMessage): Promise<string | undefined> {
  let text = ''
  try {
    for await (const chunk of request) text += String(chunk)
  } catch {
    return undefined
  }
  return text
}
