/** Yardstick of webhooks: bare undici, one `Client` a connection, one request in flight each, the same headers. */
import { Client, type Dispatcher } from 'undici'
import type { HttpSample } from '../http-sample.ts'
import { serveHelper } from './serve-helper.ts'

export interface SendQuestion {
  readonly port: number
  readonly connections: number
  readonly path: string
  readonly headers: readonly string[]
  readonly body: string
  readonly durationMs: number
}

class Sender {
  readonly #client: Client
  readonly #request: Dispatcher.DispatchOptions
  #endMs = 0
  #settle: { resolve(): void; reject(error: Error): void } | undefined
  sent = 0

  constructor(question: SendQuestion) {
    this.#client = new Client(`http://127.0.0.1:${question.port}`, {
      pipelining: 1,
      keepAliveTimeout: 75_000,
    })
    const { path, headers, body } = question
    this.#request = { method: 'POST', path, headers: [...headers], body: Buffer.from(body) }
  }

  run(endMs: number): Promise<void> {
    this.sent = 0
    this.#endMs = endMs
    return new Promise((resolve, reject) => {
      this.#settle = { resolve, reject }
      this.#client.dispatch(this.#request, this)
    })
  }

  onRequestStart(): void {}

  onResponseEnd(): void {
    this.sent += 1
    if (performance.now() < this.#endMs) this.#client.dispatch(this.#request, this)
    else this.#settle?.resolve()
  }

  onResponseError(_controller: unknown, error: Error): void {
    this.#settle?.reject(error)
  }
}

let senders: Sender[] = []

serveHelper(async (question: SendQuestion): Promise<HttpSample> => {
  if (senders.length === 0) {
    senders = Array.from({ length: question.connections }, () => new Sender(question))
  }
  const startMs = performance.now()
  await Promise.all(senders.map((sender) => sender.run(startMs + question.durationMs)))
  return {
    operations: senders.reduce((sum, { sent }) => sum + sent, 0),
    seconds: (performance.now() - startMs) / 1_000,
  }
})
