/**
 * Yardstick of single pushes: bare node:http with bare leveldown. Each body is stored unchanged with the record of a
 * queue, in synced groups: bodies that arrive while a group is written form the next one. Nothing is parsed or checked.
 */
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import leveldown from 'leveldown'
import { kinds } from '../../src/shard/kinds.ts'
import { encodeUpdate } from '../../src/shard/records/record.ts'
import { type Put, pushPuts } from '../push-puts.ts'
import { serveHelper } from './serve-helper.ts'

export interface NodeIngestQuestion {
  readonly directory: string
  readonly bots: number
}

interface Waiting {
  readonly response: ServerResponse
  readonly updateId: number
}

class Groups {
  readonly #database: ReturnType<typeof leveldown>
  readonly #bots: number
  #puts: Put[] = []
  #waiting: Waiting[] = []
  #isWriting = false
  #stored = 0

  constructor({ directory, bots }: NodeIngestQuestion) {
    this.#database = leveldown(directory)
    this.#bots = bots
  }

  open(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#database.open({ createIfMissing: true }, (error) => (error ? reject(error) : resolve()))
    })
  }

  add(text: Buffer, response: ServerResponse): void {
    const number = this.#stored++
    const queue = 1_000_000 + (number % this.#bots)
    const updateId = 5_000_000 + Math.floor(number / this.#bots)
    const value = encodeUpdate(kinds.update.key(queue, updateId), {
      typeNumber: 0,
      acceptedAtS: 1_760_000_000,
      expiresAtS: 1_760_086_400,
      orderingKey: '',
      text,
    })
    this.#puts.push(...pushPuts({ queue, updateId, value }))
    this.#waiting.push({ response, updateId })
    this.#write()
  }

  #write(): void {
    if (this.#isWriting || this.#puts.length === 0) return
    this.#isWriting = true
    const waiting = this.#waiting
    const puts = this.#puts
    this.#puts = []
    this.#waiting = []
    this.#database.batch(puts, { sync: true }, (error) => {
      if (error) throw error
      for (const { response, updateId } of waiting) {
        const body = `{"update_id":${updateId}}`
        const length = { 'Content-Length': body.length }
        response.writeHead(200, { 'Content-Type': 'application/json', ...length })
        response.end(body)
      }
      this.#isWriting = false
      this.#write()
    })
  }
}

serveHelper(async (question: NodeIngestQuestion) => {
  const groups = new Groups(question)
  await groups.open()
  const server = createServer((request, response) => {
    const parts: Buffer[] = []
    request.on('data', (part: Buffer) => parts.push(part))
    request.on('end', () => groups.add(Buffer.concat(parts), response))
  })
  server.keepAliveTimeout = 80_000
  return new Promise<number>((resolve, reject) => {
    server.on('error', reject)
    server.listen(0, '127.0.0.1', () => {
      // oxlint-disable-next-line no-unsafe-type-assertion -- a TCP server's address
      resolve((server.address() as AddressInfo).port)
    })
  })
})
