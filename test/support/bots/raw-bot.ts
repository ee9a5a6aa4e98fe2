/**
 * A bot as bytes on sockets. The test writes every call, and each response is checked for what all responses of the bot
 * API have in common. `assertEnvelope` is the only check that clients of every kind can read a response.
 */
import assert from 'node:assert/strict'
import { type RawAnswer, RawConnection } from '../producers/raw-http.ts'
import type { RegisteredBot, Server } from '../server/server.ts'
import { botOf } from '../server/bot-of.ts'

export interface RawCall {
  /** Default: POST. */
  readonly verb?: string
  /** The Content-Type. Default: none. */
  readonly type?: string | undefined
  /** Complete lines. */
  readonly headers?: readonly string[]
  readonly body?: string | Buffer
  /** Sends the body in chunks of this many bytes, without Content-Length. */
  readonly chunkBytes?: number
}

export interface Reply extends RawAnswer {
  // oxlint-disable-next-line typescript/no-explicit-any -- a test asserts its shape by using it
  readonly json: any
}

/** The next ids of bots of the first and of the second worker. */
const registered = [0, 0]

export class RawBot {
  readonly server: Server
  readonly botId: number
  readonly token: string
  /** A bot of the other worker, which each connection names first, so that all calls are forwarded. */
  readonly #over: RegisteredBot | undefined

  constructor(server: Server, bot: RegisteredBot, over?: RegisteredBot) {
    this.server = server
    this.botId = bot.botId
    this.token = bot.token
    this.#over = over
  }

  static async register(server: Server): Promise<RawBot> {
    return new RawBot(server, await registerAt(server, 0))
  }

  /**
   * Registers a bot with connections to its own worker and one with connections to the other worker, with updates for both.
   */
  static async registerBoth(server: Server, updates = 0): Promise<readonly RawBot[]> {
    const [direct, forwarded] = [await registerAt(server, 0), await registerAt(server, 0)]
    const over = await registerAt(server, 1)
    const both = [new RawBot(server, direct), new RawBot(server, forwarded, over)]
    for (const bot of both) await bot.push(updates)
    return both
  }

  /** Calls a method on a separate connection. `target` is everything after the token: `getUpdates?limit=3`. */
  call(target: string, call: RawCall = {}): Promise<Reply> {
    return this.ask(this.#path(target), call)
  }

  callOn(connection: RawConnection, target: string, call: RawCall = {}): Promise<Reply> {
    return replyTo(connection, requestBytes(this.#path(target), call))
  }

  /** Requests any path, over one of the bot's connections. */
  async ask(path: string, call: RawCall = {}): Promise<Reply> {
    const connection = await this.open()
    return onlyReplyTo(connection, requestBytes(path, call))
  }

  async open(): Promise<RawConnection> {
    const connection = RawConnection.to(this.server.botUrl)
    const over = this.#over
    if (over !== undefined) await new RawBot(this.server, over).callOn(connection, 'getMe')
    return connection
  }

  /** Calls a method with its parameters as a JSON body. */
  json(method: string, parameters: unknown): Promise<Reply> {
    return this.call(method, { type: 'application/json', body: JSON.stringify(parameters) })
  }

  async push(count: number): Promise<number[]> {
    const ids: number[] = []
    for (let nth = 0; nth < count; nth++) {
      ids.push((await this.server.push(this.botId, { message: { nth } })) ?? 0)
    }
    return ids
  }

  /** Returns the ids of the updates in the response to a getUpdates call. */
  async ids(target: string, call: RawCall = {}): Promise<number[]> {
    return idsOf(await this.call(target, call))
  }

  /** The same after a call with another offset, because a call that repeats the last offset gets less (protocol.md §5.3). */
  async freshIds(target: string, call: RawCall = {}): Promise<number[]> {
    await this.ids('getUpdates?offset=5000000000&limit=1')
    return this.ids(target, call)
  }

  async info(): Promise<Record<string, unknown>> {
    return (await this.call('getWebhookInfo')).json.result
  }

  async givenCount(target: string, call: RawCall = {}): Promise<number> {
    return (await this.freshIds(target, call)).length
  }

  async isWaiting(): Promise<boolean> {
    return (await this.server.admin('GET', `/v1/bots/${this.botId}`)).body.waiting_poll
  }

  #path(target: string): string {
    return `/bot${this.token}/${target}`
  }
}

/** Sends the bytes on a separate connection; the response must be one of the bot API. */
export function exchange(server: Server, ...pieces: readonly (string | Buffer)[]): Promise<Reply> {
  return onlyReplyTo(RawConnection.to(server.botUrl), pieces)
}

async function replyTo(
  connection: RawConnection,
  pieces: readonly (string | Buffer)[],
): Promise<Reply> {
  for (const piece of pieces) connection.write(piece)
  return assertEnvelope(await connection.answer())
}

/** Sends the bytes on a connection that is used for nothing else. */
async function onlyReplyTo(
  connection: RawConnection,
  pieces: readonly (string | Buffer)[],
): Promise<Reply> {
  try {
    return await replyTo(connection, pieces)
  } finally {
    connection.socket.destroy()
  }
}

/** Returns the head, then the body in one piece or in chunks. */
export function requestBytes(path: string, call: RawCall = {}): readonly (string | Buffer)[] {
  const { verb = 'POST', type, headers = [], body = '', chunkBytes } = call
  const bytes = Buffer.from(body)
  const isEmpty = bytes.length === 0
  const length = [`Content-Length: ${bytes.length}`]
  const framing = chunkBytes === undefined ? length : ['Transfer-Encoding: chunked']
  const framed = isEmpty && verb === 'GET' && chunkBytes === undefined ? [] : framing
  const typed = type === undefined ? [] : [`Content-Type: ${type}`]
  const head = [`${verb} ${path} HTTP/1.1`, 'Host: bots.example', ...typed, ...headers, ...framed]
  return [
    `${head.join('\r\n')}\r\n\r\n`,
    ...(chunkBytes === undefined ? [bytes] : chunksOf(bytes, chunkBytes)),
  ]
}

function chunksOf(bytes: Buffer, size: number): (string | Buffer)[] {
  const chunks: (string | Buffer)[] = []
  for (let at = 0; at < bytes.length; at += size) {
    const chunk = bytes.subarray(at, at + size)
    chunks.push(Buffer.concat([Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk]), '\r\n')
  }
  return [...chunks, '0\r\n\r\n']
}

/** Checks what all responses of the bot API have in common, whichever layer creates them. Clients depend on each of these. */
export function assertEnvelope(answer: RawAnswer): Reply {
  const { status, headers, body } = answer
  const what = `${status} ${JSON.stringify(headers)} ${body.slice(0, 300)}`
  assert.equal(headers['content-type'], 'application/json', what)
  assert.equal(headers['content-length'], `${Buffer.byteLength(body)}`, what)
  const json = JSON.parse(body)
  assert.equal(json.ok, status === 200, what)
  const { ok: _ok, ...rest } = json
  if (json.ok === true) {
    const { result, description, ...others } = rest
    assert.notEqual(result ?? undefined, undefined, what)
    assert.deepEqual([others, typeof (description ?? '')], [{}, 'string'], what)
    assert(description !== null, what)
  } else {
    assertError(rest, answer, what)
  }
  return { ...answer, json }
}

function assertError(rest: Record<string, unknown>, answer: RawAnswer, what: string): void {
  const { error_code: code, description, parameters, ...others } = rest
  assert.deepEqual(others, {}, what)
  assert.equal(code, answer.status, what)
  assert(typeof description === 'string' && description !== '', what)
  const retryAfter = answer.headers['retry-after']
  assert.equal([429, 503].includes(answer.status), retryAfter !== undefined, what)
  if (!('parameters' in rest)) {
    assert.equal(retryAfter, undefined, what)
    return
  }
  // With {}, a second key or null, some clients could not read the response at all.
  const seconds = Number(retryAfter)
  assert(Number.isInteger(seconds) && seconds > 0, what)
  assert.deepEqual(parameters, { retry_after: seconds }, what)
}

export function idsOf({ status, body, json }: Reply): number[] {
  assert.equal(status, 200, body)
  return json.result.map((update: { update_id: number }) => update.update_id)
}

export function assertRefused(reply: Reply, status: number, description: string | RegExp): void {
  assert.equal(reply.status, status, reply.body)
  if (typeof description === 'string') assert.equal(reply.json.description, description)
  else assert.match(reply.json.description, description)
}

async function registerAt(server: Server, worker: 0 | 1): Promise<RegisteredBot> {
  const nth = registered[worker] ?? 0
  registered[worker] = nth + 1
  return server.register(botOf(worker, nth))
}
