/** What the processes of a soak run share: their task, how they end, and how they call the server. */
import { Agent, request } from 'node:http'
import { Luck } from '../support/simulation/luck.ts'
import { Ledger } from './ledger.ts'

export interface SoakBot {
  readonly botId: number
  readonly token: string
  /** The bot drops its pending updates now and then. */
  readonly isDropping: boolean
}

export interface SoakTask {
  readonly ledger: string
  readonly seed: number
  readonly botUrl: string
  readonly privateUrl: string
  readonly key: string
  readonly pollingBots: readonly SoakBot[]
  readonly webhookBots: readonly SoakBot[]
  /** The port of the receiver. */
  readonly receiverPort: number
  /** Approximate pushes per second of all lanes together. */
  readonly rate: number
}

export class SoakProcess {
  readonly task: SoakTask
  readonly ledger: Ledger
  #isStopping = false

  constructor() {
    this.task = JSON.parse(process.argv[2] ?? '')
    this.ledger = new Ledger(this.task.ledger)
    process.on('message', () => {
      this.#isStopping = true
    })
    process.on('disconnect', () => process.exit(1))
  }

  get isStopping(): boolean {
    return this.#isStopping
  }

  /** Each part of a run has its own random numbers, so that none depends on the timing of another. */
  luck(part: string): Luck {
    let seed = this.task.seed
    for (const character of part) seed = Math.imul(seed ^ character.charCodeAt(0), 0x01000193)
    return new Luck(seed)
  }

  /** Ends the process when all of its tasks have ended. */
  async run(works: readonly Promise<unknown>[]): Promise<void> {
    process.send?.('started')
    await Promise.all(works)
    this.ledger.close()
    process.exit(0)
  }
}

export interface HttpAnswer {
  readonly status: number
  // oxlint-disable-next-line typescript/no-explicit-any -- callers check the shape by using it
  readonly body: any
}

/** Makes calls on one kept connection, one at a time. */
export class HttpCaller {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 })

  /** Rejects if there is no response, or one that is not JSON. */
  async post(url: string, body: object, headers: Record<string, string> = {}): Promise<HttpAnswer> {
    const { status, text } = await this.#post(url, body, headers)
    return { status, body: JSON.parse(text) }
  }

  #post(
    url: string,
    body: object,
    headers: Record<string, string>,
  ): Promise<{ readonly status: number; readonly text: string }> {
    return new Promise((resolve, reject) => {
      const options = { method: 'POST', agent: this.#agent, headers, timeout: 40_000 }
      const sent = request(url, options, (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.once('error', reject)
        response.once('end', () => {
          resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString() })
        })
      })
      sent.once('error', reject)
      sent.once('timeout', () => sent.destroy(new Error('no answer for 40 s')))
      sent.setHeader('content-type', 'application/json')
      sent.end(JSON.stringify(body))
    })
  }
}

export function pause(delayMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, delayMs))
}
