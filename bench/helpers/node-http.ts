/** Yardstick of the bot API: bare node:http in one process, the same bytes in every answer. */
import { createServer } from 'node:http'
import { type AddressInfo } from 'node:net'
import { serveHelper } from './serve-helper.ts'

export interface NodeHttpQuestion {
  readonly bodyBytes: number
}

serveHelper((question: NodeHttpQuestion) => {
  const body = Buffer.alloc(question.bodyBytes, 'x')
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': body.length })
    response.end(body)
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
