/**
 * Yardstick of producers: the cost of pushing objects without a client. NDJSON over bare sockets, a random idempotency
 * key for each pair, results parsed and counted. Nothing is kept to be sent again, and no push gets its own result.
 */
import { randomUUID } from 'node:crypto'
import { connect, type Socket } from 'node:net'
import { StringDecoder } from 'node:string_decoder'
import type { IngestSample } from '../ingest-sample.ts'
import { type ProducerItem, ProducerItems, type ProducerQuestion } from '../producer-items.ts'
import { serveHelper } from './serve-helper.ts'

/** The bounds of the client. */
const pairsInFlightMax = 16_384
const pieceLength = 65_536

class RawStream {
  readonly #question: ProducerQuestion
  readonly #items: Iterator<ProducerItem, void>
  readonly #socket: Socket
  readonly #decoder = new StringDecoder('utf8')
  #rest = ''
  #sent = 0
  #isBlocked = false
  #isEnded = false
  stored = 0

  constructor(question: ProducerQuestion, items: Iterator<ProducerItem, void>) {
    this.#question = question
    this.#items = items
    this.#socket = connect({ host: '127.0.0.1', port: question.port, noDelay: true })
  }

  run(): Promise<void> {
    return new Promise((resolve, reject) => {
      const socket = this.#socket
      socket.on('error', reject)
      socket.on('close', () => {
        if (this.stored === this.#sent) resolve()
        else reject(new Error(`${this.stored} results of ${this.#sent} pairs`))
      })
      socket.on('data', (bytes) => this.#read(this.#decoder.write(bytes)))
      socket.on('drain', () => {
        this.#isBlocked = false
        this.#send()
      })
      socket.write(
        `POST /v1/updates HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${this.#question.adminKey}\r\n` +
          'Content-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n',
      )
      this.#send()
    })
  }

  /** Lines of the head and of chunk sizes are not results. */
  #read(text: string): void {
    const lines = (this.#rest + text).split('\n')
    this.#rest = lines.pop() ?? ''
    for (const line of lines) {
      if (line.startsWith('{')) this.#onResult(line)
      else if (line.startsWith('HTTP/1.1') && !line.includes(' 200 ')) this.#fail(line)
    }
    this.#send()
  }

  #onResult(line: string): void {
    const { update_id: updateId }: { readonly update_id?: number } = JSON.parse(line)
    if (updateId === undefined) this.#fail(line)
    else this.stored += 1
  }

  #fail(line: string): void {
    this.#socket.destroy(new Error(line))
  }

  #send(): void {
    while (!this.#isEnded && !this.#isBlocked && this.#sent - this.stored < pairsInFlightMax) {
      const piece = this.#nextPiece()
      if (piece !== '') this.#write(piece)
      else this.#end()
    }
  }

  #nextPiece(): string {
    let piece = ''
    while (piece.length < pieceLength) {
      const { done, value } = this.#items.next()
      if (done === true) break
      const { botId, update } = value
      piece += `{"bot_id":${botId},"idempotency_key":"${randomUUID()}"}\n${JSON.stringify(update)}\n`
      this.#sent += 1
    }
    return piece
  }

  #write(piece: string): void {
    const bytes = Buffer.from(piece)
    this.#socket.cork()
    this.#socket.write(`${bytes.length.toString(16)}\r\n`, 'latin1')
    this.#socket.write(bytes)
    this.#isBlocked = !this.#socket.write('\r\n', 'latin1')
    this.#socket.uncork()
  }

  #end(): void {
    this.#isEnded = true
    this.#socket.write('0\r\n\r\n')
  }
}

let prepared: ProducerItems | undefined

serveHelper(async (question: ProducerQuestion): Promise<IngestSample> => {
  const items = (prepared ??= new ProducerItems(question))
  const startMs = performance.now()
  const { streams } = question
  const all = Array.from({ length: streams }, (_, index) => {
    const first = items.firstOf(index, streams)
    return new RawStream(question, items.until(startMs + question.durationMs, first))
  })
  await Promise.all(all.map((stream) => stream.run()))
  return {
    operations: all.reduce((sum, { stored }) => sum + stored, 0),
    seconds: (performance.now() - startMs) / 1_000,
  }
})
