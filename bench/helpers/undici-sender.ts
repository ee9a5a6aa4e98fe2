/**
 * Yardstick of webhooks: bare undici, one `Client` per connection with one request in flight, the same headers, and the
 * same connections for each bot; either as fast as possible, or at a steady rate to random bots.
 */
import { Client, type Dispatcher } from 'undici'
import type { IngestSample } from '../ingest-sample.ts'
import { seededRandom } from '../sample-updates.ts'
import type { SendQuestion } from '../steady-messages.ts'
import { steadyTicks } from '../steady-ticks.ts'
import { monotonicUs, stampPlace, writeStamp } from '../time-stamp.ts'
import { serveHelper } from './serve-helper.ts'

class Sender {
  readonly #bot: Bot
  readonly #client: Client
  readonly #request: Dispatcher.DispatchOptions

  constructor(question: SendQuestion, bot: Bot) {
    const { origin, trust, path, headers } = question
    this.#bot = bot
    this.#client = new Client(origin, {
      pipelining: 1,
      keepAliveTimeout: 75_000,
      ...(trust === undefined ? {} : { connect: { ca: trust } }),
    })
    this.#request = { method: 'POST', path, headers: [...headers], body: null }
  }

  send(body: Buffer): void {
    this.#request.body = body
    this.#client.dispatch(this.#request, this)
  }

  onRequestStart(): void {}

  onResponseEnd(): void {
    this.#bot.answered(this)
  }

  onResponseError(_controller: unknown, error: Error): void {
    run.fail(error)
  }
}

/** The requests due for one endpoint: they wait while all its connections are busy. */
class Bot {
  readonly #idle: Sender[]
  readonly #body: Buffer
  readonly #stampAt: number
  readonly #waiting: Buffer[] = []

  constructor(question: SendQuestion) {
    this.#body = Buffer.from(question.body)
    this.#stampAt = stampPlace(this.#body)
    this.#idle = Array.from({ length: question.connections }, () => new Sender(question, this))
  }

  /** Keeps all connections busy until the end of the run. */
  sendAll(): void {
    for (const sender of this.#idle.splice(0)) {
      run.pending += 1
      sender.send(this.#body)
    }
  }

  sendStamped(): void {
    const body = Buffer.from(this.#body)
    writeStamp(body, this.#stampAt, monotonicUs())
    run.pending += 1
    const sender = this.#idle.pop()
    if (sender === undefined) this.#waiting.push(body)
    else sender.send(body)
  }

  answered(sender: Sender): void {
    run.answered += 1
    if (performance.now() < run.hardUntilMs) {
      sender.send(this.#body)
      return
    }
    const next = this.#waiting.shift()
    if (next === undefined) this.#idle.push(sender)
    else sender.send(next)
    run.settleOne()
  }
}

class Run {
  answered = 0
  /** Requests that are due and have no response. */
  pending = 0
  /** Until then every response is followed by another request. */
  hardUntilMs = 0
  #settle: { resolve(): void; reject(error: Error): void } | undefined

  fail(error: Error): void {
    this.#settle?.reject(error)
  }

  settleOne(): void {
    this.pending -= 1
    if (this.pending === 0) this.#settle?.resolve()
  }

  /** Resolves when nothing is pending. */
  settled(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#settle = { resolve, reject }
      if (this.pending === 0) resolve()
    })
  }
}

let bots: Bot[] = []
let run = new Run()
const random = seededRandom(5)

async function sendHard({ durationMs }: SendQuestion): Promise<void> {
  run.hardUntilMs = performance.now() + durationMs
  for (const bot of bots) bot.sendAll()
  await run.settled()
}

async function sendSteadily(question: SendQuestion, ratePerSecond: number): Promise<void> {
  const { durationMs } = question
  await steadyTicks({ ratePerSecond, durationMs }, (due) => {
    for (let index = 0; index < due; index++) {
      bots[Math.floor(random() * bots.length)]?.sendStamped()
    }
  })
  await run.settled()
}

serveHelper(async (question: SendQuestion): Promise<IngestSample> => {
  if (bots.length === 0) bots = Array.from({ length: question.bots }, () => new Bot(question))
  run = new Run()
  const startMs = performance.now()
  const { ratePerSecond } = question
  if (ratePerSecond === undefined) await sendHard(question)
  else await sendSteadily(question, ratePerSecond)
  return { operations: run.answered, seconds: (performance.now() - startMs) / 1_000 }
})
