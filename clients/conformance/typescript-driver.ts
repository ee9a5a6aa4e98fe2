/** The driver of the client for TypeScript (README.md). */
import { createInterface } from 'node:readline'
import {
  type ClientOptions,
  PostboteClient,
  PostboteClientError,
  type PushItem,
  type PushResult,
} from '../typescript/postbote-client.ts'
import { type Job, type Mode, newBot, rotation, updateOf } from './job.ts'

/** One job with its client. */
class JobRun {
  readonly #job: Job
  readonly #client: PostboteClient
  #inFlightMax = 0

  constructor(job: Job) {
    this.#job = job
    this.#client = new PostboteClient({
      ...(job.client as unknown as ClientOptions),
      onRetry: ({ error, attempt, botId }) =>
        print({ retry: { code: error.code, attempt, botId } }),
    })
  }

  async run(): Promise<void> {
    const began = performance.now()
    await this.#inMode()
    const pushMs = Math.round(performance.now() - began)
    await this.#client.close()
    print({ done: true, pushMs, inFlightMax: this.#inFlightMax })
  }

  #inMode(): Promise<void> {
    const modes: Readonly<Record<Mode, () => Promise<void>>> = {
      single: () => this.#single(),
      stream: () => this.#stream(),
      pushAll: () => this.#pushAll(),
      calls: () => this.#calls(),
    }
    return modes[this.#job.mode]()
  }

  async #single(): Promise<void> {
    let next = 0
    const lane = async (): Promise<void> => {
      while (next < this.#job.count) {
        const n = next++
        const { botId, update, options } = this.#item(n)
        await settled(n, this.#client.push(botId, update, options))
      }
    }
    const lanes = Array.from({ length: this.#job.concurrency }, lane)
    await Promise.all([...lanes, this.#closeEarly()])
  }

  async #stream(): Promise<void> {
    const stream = this.#client.openStream(this.#job.stream)
    const results: Promise<void>[] = []
    for (let n = 0; n < this.#job.count; n++) {
      await stream.ready()
      const { botId, update, options } = this.#item(n)
      results.push(settled(n, stream.push(botId, update, options)))
      this.#inFlightMax = Math.max(this.#inFlightMax, stream.pairsInFlight)
    }
    await Promise.all([...results, this.#closeEarly()])
  }

  async #pushAll(): Promise<void> {
    const { count, stream } = this.#job
    const item = (n: number): PushItem => this.#item(n)
    function* items(): Generator<PushItem & { readonly n: number }> {
      for (let n = 0; n < count; n++) yield { n, ...item(n) }
    }
    for await (const { item: pushed, result, error } of this.#client.pushAll(items(), stream)) {
      if (error === undefined) print({ n: pushed.n, ...result })
      else print({ n: pushed.n, error: printed(error) })
    }
  }

  async #calls(): Promise<void> {
    const [botId = 0] = this.#job.bots
    const all: Readonly<Record<string, () => Promise<unknown>>> = {
      createBot: () => this.#client.createBot(newBot),
      getBot: () => this.#client.getBot(botId),
      rotateToken: () => this.#client.rotateToken(botId, rotation),
      removeBot: () => this.#client.removeBot(botId),
    }
    for (const [call, make] of Object.entries(all)) {
      await make().then(
        (result = {}) => print({ call, result }),
        (error: unknown) => print({ call, error: printed(error) }),
      )
    }
  }

  async #closeEarly(): Promise<void> {
    const { closeMs } = this.#job
    if (closeMs !== undefined) await this.#client.close({ timeoutMs: closeMs })
  }

  #item(n: number): PushItem {
    const { bots, keyPrefix, options: given = {} } = this.#job
    const botId = bots[n % bots.length] ?? 0
    const options =
      keyPrefix === undefined ? given : { ...given, idempotencyKey: `${keyPrefix}${n}` }
    return { botId, update: updateOf(this.#job, n), options }
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  await new JobRun(JSON.parse(line)).run()
}

function settled(n: number, result: Promise<PushResult>): Promise<void> {
  return result.then(
    (stored) => print({ n, ...stored }),
    (error: unknown) => print({ n, error: printed(error) }),
  )
}

function printed(error: unknown): object {
  if (!(error instanceof PostboteClientError)) throw error
  const { code, status, retryAfterS, isRetryable, isOutcomeUnknown, message } = error
  return { code, status, retryAfterS, isRetryable, isOutcomeUnknown, message }
}

function print(line: object): void {
  process.stdout.write(`${JSON.stringify(line)}\n`)
}
