/**
 * Load of ingest: a few NDJSON streams over raw sockets, with prepared chunks of pairs, and as many in flight as the
 * server accepts. With groups, the streams are divided among them, each with the bots of its group. A result is counted by its
 * closing brace: the result of every accepted pair is `{"update_id":N}`.
 */
import { connect, type Socket } from 'node:net'
import { numberMark } from '../http-sample.ts'
import type { IngestSample } from '../ingest-sample.ts'
import { sampleUpdate, seededRandom } from '../sample-updates.ts'
import { firstBotId } from '../server-under-test.ts'
import { hintedPath, isOfGroup, type StreamGroup } from '../stream-groups.ts'
import { serveHelper } from './serve-helper.ts'

export interface IngestQuestion {
  readonly port: number
  readonly adminKey: string
  /** At least; each group has as many as the others. */
  readonly streams: number
  /** Without them, no stream has a hint. */
  readonly groups?: readonly StreamGroup[] | undefined
  readonly bots: number
  readonly hasOrderingKey: boolean
  readonly hasIdempotencyKey: boolean
  readonly updateBytes: number
  readonly durationMs: number
}

/** Prepared pairs. If they have idempotency keys, they get new ones each time they are sent. */
interface Chunk {
  readonly bytes: Buffer
  readonly pairs: number
  readonly keyPlaces: readonly number[]
}

/** Streams of the same bots. */
interface Lane {
  readonly port: number
  readonly path: string
  readonly chunks: readonly Chunk[]
}

/** More if there are more bots. */
const preparedBytesMin = 6e6
const chunkBytes = 6e4
/** Per stream; with the server's own bounds, the server decides when to wait. */
const pairsInFlightMax = 16_000
const bytesInFlightMax = 2e7
const closingBrace = 0x7d

class Stream {
  readonly #question: IngestQuestion
  readonly #path: string
  readonly #chunks: readonly Chunk[]
  readonly #socket: Socket
  readonly #inFlightMax: number
  readonly #endMs: number
  #next: number
  #sentPairs = 0
  #isEnded = false
  #isBlocked = false
  answered = 0

  constructor(
    question: IngestQuestion,
    { port, path, chunks }: Lane,
    place: { readonly endMs: number; readonly first: number },
  ) {
    this.#question = question
    this.#path = path
    this.#chunks = chunks
    this.#endMs = place.endMs
    this.#next = place.first
    this.#inFlightMax = Math.min(pairsInFlightMax, bytesInFlightMax / question.updateBytes)
    this.#socket = connect({ host: '127.0.0.1', port, noDelay: true })
  }

  run(): Promise<void> {
    return new Promise((resolve, reject) => {
      const socket = this.#socket
      socket.on('data', (bytes) => {
        if (bytes.includes('"error"') || (this.answered === 0 && bytes.includes('HTTP/1.1 4'))) {
          socket.destroy(new Error(bytes.toString().slice(0, 500)))
        }
        this.#count(bytes)
        this.#send()
      })
      socket.on('drain', () => {
        this.#isBlocked = false
        this.#send()
      })
      socket.on('error', reject)
      socket.on('close', () => {
        if (this.answered === this.#sentPairs) resolve()
        else reject(new Error(`${this.answered} answers to ${this.#sentPairs} pairs`))
      })
      socket.write(
        `POST ${this.#path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${this.#question.adminKey}\r\n` +
          'Content-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n',
      )
      this.#send()
    })
  }

  #count(bytes: Buffer): void {
    for (const byte of bytes) if (byte === closingBrace) this.answered += 1
  }

  #send(): void {
    if (performance.now() >= this.#endMs) return this.#end()
    while (!this.#isBlocked && this.#sentPairs - this.answered < this.#inFlightMax) {
      const chunk = this.#chunks[this.#next]
      if (chunk === undefined) throw new Error('expected prepared chunks')
      this.#next = (this.#next + 1) % this.#chunks.length
      this.#sentPairs += chunk.pairs
      this.#isBlocked = !this.#socket.write(withKeys(chunk))
    }
  }

  #end(): void {
    if (this.#isEnded) return
    this.#isEnded = true
    this.#socket.write('0\r\n\r\n')
  }
}

/** A number that no earlier run has used, in this process or another. */
let lastKey = Date.now() * 1_000

/** The bytes of a chunk may still wait in another socket, so new keys are written to a copy. */
function withKeys({ bytes, keyPlaces }: Chunk): Buffer {
  if (keyPlaces.length === 0) return bytes
  const copy = Buffer.from(bytes)
  for (const place of keyPlaces) {
    lastKey += 1
    copy.write(String(lastKey).padStart(numberMark.length, '0'), place, 'latin1')
  }
  return copy
}

function lanesOf(question: IngestQuestion): Lane[] {
  const { port, groups, bots } = question
  const all = Array.from({ length: bots }, (_, index) => firstBotId + index)
  if (groups === undefined) return [{ port, path: '/v1/updates', chunks: prepare(question, all) }]
  return groups.map((group) => {
    const own = all.filter((botId) => isOfGroup(group, botId))
    return { port: group.port, path: hintedPath(group), chunks: prepare(question, own) }
  })
}

function prepare(question: IngestQuestion, bots: readonly number[]): Chunk[] {
  const random = seededRandom(1)
  const chunks: Chunk[] = []
  const { updateBytes } = question
  const preparedPairs = Math.max(preparedBytesMin / updateBytes, bots.length)
  const pairsPerChunk = Math.max(1, Math.floor(chunkBytes / updateBytes))
  const idempotency = question.hasIdempotencyKey ? `,"idempotency_key":"${numberMark}"` : ''
  for (let first = 0; first < preparedPairs; first += pairsPerChunk) {
    let text = ''
    for (let index = first; index < first + pairsPerChunk; index++) {
      const botId = bots[index % bots.length]
      const chatId = index % 5_000
      const key = question.hasOrderingKey ? `,"ordering_key":"${chatId}"` : ''
      text += `{"bot_id":${botId}${key}${idempotency}}\n${sampleUpdate(random, chatId, updateBytes)}\n`
    }
    const size = Buffer.byteLength(text).toString(16)
    const bytes = Buffer.from(`${size}\r\n${text}\r\n`)
    chunks.push({ bytes, pairs: pairsPerChunk, keyPlaces: placesOf(bytes) })
  }
  return chunks
}

function placesOf(bytes: Buffer): number[] {
  const places: number[] = []
  for (let at = bytes.indexOf(numberMark); at >= 0; at = bytes.indexOf(numberMark, at + 1)) {
    places.push(at)
    at += numberMark.length
  }
  return places
}

let lanes: readonly Lane[] | undefined

serveHelper(async (question: IngestQuestion): Promise<IngestSample> => {
  const prepared = (lanes ??= lanesOf(question))
  const startMs = performance.now()
  const endMs = startMs + question.durationMs
  const length = Math.ceil(question.streams / prepared.length)
  const streams = prepared.flatMap((lane) =>
    Array.from({ length }, (_, index) => {
      const first = Math.floor((index * lane.chunks.length) / length)
      return new Stream(question, lane, { endMs, first })
    }),
  )
  await Promise.all(streams.map((stream) => stream.run()))
  return {
    operations: streams.reduce((sum, stream) => sum + stream.answered, 0),
    seconds: (performance.now() - startMs) / 1_000,
  }
})
