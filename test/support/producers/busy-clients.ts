/**
 * Clients that keep a server busy in every possible way and record each response that is not as it should be. Each
 * pushes numbered updates, so that a bot's messages show what arrived, in which order, and how often.
 */
import { Agent, request } from 'node:http'
import { type Hints, noHints, PushStreams } from './push-streams.ts'
import type { RegisteredBot, Server } from '../server/server.ts'

export interface BusyClient {
  /** The failures, as text. */
  readonly failures: readonly string[]
  /** Number of correct responses. */
  readonly answered: number
  stop(): Promise<void>
}

type ServerAddress = Pick<Server, 'botUrl' | 'privateUrl' | 'key'>

/** The update ids of the accepted pushes of each bot, in the order of their numbers. */
export class Pushed {
  readonly #ids = new Map<number, number[]>()

  next(botId: number): number {
    return this.ids(botId).length
  }

  add(botId: number, updateId: number): void {
    this.ids(botId).push(updateId)
  }

  ids(botId: number): number[] {
    let ids = this.#ids.get(botId)
    if (ids === undefined) {
      ids = []
      this.#ids.set(botId, ids)
    }
    return ids
  }
}

export abstract class Repeating implements BusyClient {
  readonly failures: string[] = []
  answered = 0
  #isStopped = false
  readonly #running: Promise<void>

  constructor() {
    // Starts after the constructors of the derived classes.
    this.#running = Promise.resolve().then(() => this.#repeat())
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#running
    this.ended()
  }

  protected get isStopped(): boolean {
    return this.#isStopped
  }

  protected abstract once(round: number): Promise<void>

  protected ended(): void {
    // There is nothing to close.
  }

  async #repeat(): Promise<void> {
    for (let round = 0; !this.#isStopped; round++) {
      try {
        await this.once(round)
        this.answered++
      } catch (error) {
        this.failures.push(`${this.constructor.name}: ${String(error)}`)
      }
    }
  }
}

/**
 * Pushes one update after another, to bots in turn: on one connection, so that with several workers most are forwarded,
 * or on one connection each.
 */
export class SinglePusher extends Repeating {
  readonly #server: ServerAddress
  readonly #bots: readonly RegisteredBot[]
  readonly #pushed: Pushed
  readonly #agent: Agent
  readonly #pauseMs: number

  constructor(
    server: ServerAddress,
    bots: readonly RegisteredBot[],
    pushed: Pushed,
    { keepAlive, pauseMs }: { readonly keepAlive: boolean; readonly pauseMs: number },
  ) {
    super()
    this.#server = server
    this.#bots = bots
    this.#pushed = pushed
    this.#agent = new Agent({ keepAlive, maxSockets: 1 })
    this.#pauseMs = pauseMs
  }

  protected override async once(round: number): Promise<void> {
    const bot = inTurn(this.#bots, round)
    const text = await call(this.#agent, {
      url: `${this.#server.privateUrl}/v1/bots/${bot.botId}/updates`,
      headers: { authorization: `Bearer ${this.#server.key}` },
      body: numbered(this.#pushed.next(bot.botId)),
    })
    this.#pushed.add(bot.botId, JSON.parse(text).update_id)
    await pause(this.#pauseMs)
  }

  protected override ended(): void {
    this.#agent.destroy()
  }
}

/**
 * Pushes to bots in turn on a stream, or on one to each worker. When a stream ends, it pushes what has no result on the next
 * one.
 */
export class StreamPusher extends Repeating {
  readonly #server: ServerAddress
  readonly #bots: readonly RegisteredBot[]
  readonly #pushed: Pushed
  readonly #hints: Hints

  constructor(
    server: ServerAddress,
    bots: readonly RegisteredBot[],
    pushed: Pushed,
    hints = noHints,
  ) {
    super()
    this.#server = server
    this.#bots = bots
    this.#pushed = pushed
    this.#hints = hints
  }

  /** Runs its streams until the server ends one. */
  protected override async once(): Promise<void> {
    const streams = new PushStreams(this.#server, await this.#hints(this.#server))
    for (const { response } of streams.all) {
      const { statusCode } = await response
      if (statusCode !== 200) throw new Error(`status ${statusCode}`)
    }
    let isOpen = true
    void streams.ended.then(() => (isOpen = false))
    while (isOpen && !this.isStopped) {
      isOpen = await this.#pushToAll(streams)
      await pause(20)
    }
    if (!(await streams.end())) throw new Error('the answer of a stream broke off')
  }

  /** Returns false if a stream has ended. Results come in the order of its pairs, so no result of a bot follows a missing one. */
  async #pushToAll(streams: PushStreams): Promise<boolean> {
    const results = await Promise.all(
      this.#bots.flatMap(({ botId }) =>
        [0, 1, 2].map(async (ahead) => ({
          botId,
          result: await streams
            .of(botId)
            .push(
              { bot_id: botId, ordering_key: String(botId) },
              numbered(this.#pushed.next(botId) + ahead),
            ),
        })),
      ),
    )
    for (const { botId, result } of results) {
      if (result?.update_id !== undefined) this.#pushed.add(botId, result.update_id)
      else if (result !== undefined) throw new Error(JSON.stringify(result))
    }
    return results.every(({ result }) => result !== undefined)
  }
}

/** Calls methods of many bots in turn: on one connection, as a reverse proxy does, or on one connection each. */
export class MixedCaller extends Repeating {
  readonly #server: ServerAddress
  readonly #bots: readonly RegisteredBot[]
  readonly #agent: Agent

  constructor(server: ServerAddress, bots: readonly RegisteredBot[], keepAlive: boolean) {
    super()
    this.#server = server
    this.#bots = bots
    this.#agent = new Agent({ keepAlive, maxSockets: 1 })
  }

  protected override async once(round: number): Promise<void> {
    const bot = inTurn(this.#bots, round)
    const text = await call(this.#agent, {
      url: `${this.#server.botUrl}/bot${bot.token}/getMe`,
      headers: {},
      body: '',
    })
    if (JSON.parse(text).result.id !== bot.botId) throw new Error(`a mixed-up answer: ${text}`)
    await pause(20)
  }

  protected override ended(): void {
    this.#agent.destroy()
  }
}

/** Requests the metrics and records counters that decrease. */
export class MetricsWatcher extends Repeating {
  readonly #server: Server
  #before = new Map<string, number>()

  constructor(server: Server) {
    super()
    this.#server = server
  }

  protected override async once(): Promise<void> {
    const { status, text } = await this.#server.admin('GET', '/metrics')
    if (status !== 200) throw new Error(text)
    const now = new Map<string, number>()
    for (const [, name = '', value] of text.matchAll(/^(postbote_\w+_total(?:\{.*\})?) (\d+)$/gm)) {
      now.set(name, Number(value))
    }
    for (const [name, value] of this.#before) {
      if ((now.get(name) ?? 0) < value) throw new Error(`${name} went back from ${value}`)
    }
    this.#before = now
    const ready = await this.#server.admin('GET', '/readyz')
    if (ready.status !== 200) throw new Error(ready.text)
    await pause(50)
  }
}

/** Returns the number in a message that one of these clients pushed. */
export function numberOf(update: { readonly message?: Readonly<Record<string, unknown>> }): number {
  return Number(update.message?.['text'])
}

function numbered(number: number): string {
  return JSON.stringify({ message: { message_id: 1, chat: { id: 1 }, text: String(number) } })
}

function inTurn(bots: readonly RegisteredBot[], round: number): RegisteredBot {
  const bot = bots[round % bots.length]
  if (bot === undefined) throw new Error('no bot')
  return bot
}

interface PlainCall {
  readonly url: string
  readonly headers: Record<string, string>
  readonly body: string
}

/** Returns the text of a response, whose status must be 200. */
function call(agent: Agent, { url, headers, body }: PlainCall): Promise<string> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method: 'POST', agent, headers }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.once('error', reject)
      response.once('end', () => {
        const text = Buffer.concat(chunks).toString()
        if (response.statusCode === 200) resolve(text)
        else reject(new Error(`${response.statusCode} ${text}`))
      })
    })
    sent.once('error', reject)
    sent.end(body)
  })
}

function pause(delayMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, delayMs))
}
