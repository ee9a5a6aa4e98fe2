/**
 * Yardstick of the bot API: bare node:http in one process. It sends the same bytes to every request; for /large it
 * compresses a list of updates each time, and /wait gets no response until the client leaves.
 */
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import { sampleUpdate, seededRandom } from '../sample-updates.ts'
import { serveHelper } from './serve-helper.ts'

export interface NodeHttpQuestion {
  readonly bodyBytes: number
  readonly packed?: PackedShape
}

interface PackedShape {
  readonly updates: number
  readonly updateBytes: number
}

/** The options of workers/compress-updates.ts. */
const gzipOptions = { level: 1, chunkSize: 128 * 1024 }
const backlog = 4_096

function listOf({ updates, updateBytes }: PackedShape): Buffer {
  const random = seededRandom(2)
  const texts = Array.from({ length: updates }, (_, index) =>
    sampleUpdate(random, index, updateBytes),
  )
  return Buffer.from(`[${texts.join(',')}]`)
}

function answer(response: ServerResponse, body: Buffer): void {
  response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': body.length })
  response.end(body)
}

serveHelper((question: NodeHttpQuestion) => {
  const body = Buffer.alloc(question.bodyBytes, 'x')
  const list = question.packed === undefined ? body : listOf(question.packed)
  const server = createServer((request, response) => {
    if (request.url === '/wait') return
    if (request.url === '/large') answer(response, gzipSync(list, gzipOptions))
    else answer(response, body)
  })
  server.keepAliveTimeout = 80_000
  return new Promise<number>((resolve, reject) => {
    server.on('error', reject)
    server.listen({ port: 0, host: '127.0.0.1', backlog }, () => {
      // oxlint-disable-next-line no-unsafe-type-assertion -- a TCP server's address
      resolve((server.address() as AddressInfo).port)
    })
  })
})
