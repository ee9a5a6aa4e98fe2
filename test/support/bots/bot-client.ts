/**
 * The calls of one bot, each on a separate connection: either a direct one to the bot's worker, or one that another
 * worker holds, so that it forwards every call.
 */
import { Agent, type OutgoingHttpHeaders, request } from 'node:http'
import type { Server } from '../server/server.ts'

export interface BotAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly bytes: Buffer
  // oxlint-disable-next-line typescript/no-explicit-any -- a test asserts its shape by using it
  readonly body: any
  readonly tookMs: number
}

export interface BotClientOptions {
  readonly server: Pick<Server, 'botUrl'>
  readonly token: string
  /** The token of a bot of another worker, which each connection names first. */
  readonly over?: string | undefined
}

export interface CallOptions {
  readonly signal?: AbortSignal
  readonly headers?: OutgoingHttpHeaders
}

export class BotClient {
  readonly #options: BotClientOptions

  constructor(options: BotClientOptions) {
    this.#options = options
  }

  /** Returns a client of the same bot with another token. */
  with(token: string): BotClient {
    return new BotClient({ ...this.#options, token })
  }

  async call(
    method: string,
    parameters: object = {},
    options: CallOptions = {},
  ): Promise<BotAnswer> {
    const { server, token, over } = this.#options
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    try {
      if (over !== undefined) await post(agent, `${server.botUrl}/bot${over}/getMe`, {}, {})
      return await post(agent, `${server.botUrl}/bot${token}/${method}`, parameters, options)
    } finally {
      agent.destroy()
    }
  }

  /** Returns the updates of one getUpdates call, which must succeed. */
  // oxlint-disable-next-line typescript/no-explicit-any -- a test asserts its shape by using it
  async updates(parameters: object = {}): Promise<any[]> {
    const { body } = await this.call('getUpdates', parameters)
    return body.result
  }
}

function post(
  agent: Agent,
  url: string,
  parameters: object,
  { signal, headers }: CallOptions,
): Promise<BotAnswer> {
  const startMs = performance.now()
  return new Promise((resolve, reject) => {
    const sent = request(url, {
      method: 'POST',
      agent,
      headers: { 'content-type': 'application/json', ...headers },
      ...(signal === undefined ? {} : { signal }),
    })
    sent.once('error', reject)
    sent.once('response', (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.once('error', reject)
      response.once('end', () => {
        const bytes = Buffer.concat(chunks)
        const isPlain = response.headers['content-encoding'] === undefined
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          bytes,
          body: isPlain ? JSON.parse(bytes.toString()) : undefined,
          tookMs: performance.now() - startMs,
        })
      })
    })
    sent.end(JSON.stringify(parameters))
  })
}
