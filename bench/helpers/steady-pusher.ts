/**
 * A producer with a steady rate: it writes pairs for random bots and keys into one NDJSON stream when they are due, each
 * stamped with the moment it is written.
 */
import { connect, type Socket } from 'node:net'
import type { SteadyQuestion } from '../steady-messages.ts'
import { sampleUpdate, seededRandom } from '../sample-updates.ts'
import { steadyTicks } from '../steady-ticks.ts'
import { monotonicUs, stampPlace, writeStamp } from '../time-stamp.ts'
import { serveHelper } from './serve-helper.ts'

const samplesKept = 1_000
const closingBrace = 0x7d
const newLine = Buffer.from('\n')

class Pusher {
  readonly #question: SteadyQuestion
  readonly #random = seededRandom(4)
  readonly #samples: readonly Buffer[]
  readonly #socket: Socket
  #answered = 0

  constructor(question: SteadyQuestion) {
    this.#question = question
    this.#samples = Array.from({ length: samplesKept }, (_, index) =>
      Buffer.from(sampleUpdate(this.#random, index, question.updateBytes)),
    )
    this.#socket = connect({ host: '127.0.0.1', port: question.port, noDelay: true })
  }

  async run(): Promise<number> {
    const closed = this.#closed()
    this.#socket.write(
      `POST /v1/updates HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${this.#question.adminKey}\r\n` +
        'Content-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n',
    )
    const count = await steadyTicks(this.#question, (due) => this.#push(due))
    this.#socket.write('0\r\n\r\n')
    await closed
    if (this.#answered !== count) throw new Error(`${this.#answered} answers to ${count} pairs`)
    return count
  }

  #closed(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#socket.on('error', reject)
      this.#socket.on('close', () => resolve())
      this.#socket.on('data', (bytes) => {
        if (bytes.includes('"error"') || bytes.includes('HTTP/1.1 4')) {
          this.#socket.destroy(new Error(bytes.toString('latin1', 0, 500)))
        }
        for (const byte of bytes) if (byte === closingBrace) this.#answered += 1
      })
    })
  }

  #push(count: number): void {
    const parts: Buffer[] = []
    for (let index = 0; index < count; index++) parts.push(this.#header(), this.#update(), newLine)
    const bytes = Buffer.concat(parts)
    this.#socket.write(`${bytes.length.toString(16)}\r\n`)
    this.#socket.write(bytes)
    this.#socket.write('\r\n')
  }

  #header(): Buffer {
    const { firstBotId, bots, keys } = this.#question
    const botId = firstBotId + this.#below(bots)
    return Buffer.from(`{"bot_id":${botId},"ordering_key":"${this.#below(keys)}"}\n`)
  }

  #update(): Buffer {
    const sample = this.#samples[this.#below(samplesKept)]
    if (sample === undefined) throw new Error('expected a sample')
    // Each sample is copied before the next one is stamped.
    const update = Buffer.from(sample)
    writeStamp(update, stampPlace(update), monotonicUs())
    return update
  }

  #below(max: number): number {
    return Math.floor(this.#random() * max)
  }
}

serveHelper((question: SteadyQuestion) => new Pusher(question).run())
