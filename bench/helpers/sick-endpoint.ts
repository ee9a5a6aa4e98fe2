/**
 * An endpoint that accepts connections until it becomes sick: then it refuses connections, never responds, or responds
 * 500.
 */
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import type { SickCounts, Sickness, SickQuestion } from '../sick-messages.ts'
import { serveHelper } from './serve-helper.ts'

const refusal = Buffer.from('HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n')

const sockets = new Set<Socket>()
let server: Server | undefined
let port = 0
let sickness: Sickness | undefined
let connectionsMax = 0
let requests = 0

function onSocket(socket: Socket): void {
  sockets.add(socket)
  connectionsMax = Math.max(connectionsMax, sockets.size)
  socket.on('error', () => socket.destroy())
  socket.on('close', () => sockets.delete(socket))
  socket.on('data', () => {
    // Requests of this size arrive in one piece.
    requests += 1
    if (sickness === '500s') socket.write(refusal)
  })
}

async function listen(): Promise<number> {
  await close()
  sickness = undefined
  connectionsMax = 0
  requests = 0
  const created = createServer(onSocket)
  server = created
  await new Promise<void>((resolve, reject) => {
    created.on('error', reject)
    created.listen(port, '127.0.0.1', resolve)
  })
  // oxlint-disable-next-line no-unsafe-type-assertion -- a TCP server's address
  port = (created.address() as AddressInfo).port
  return port
}

async function close(): Promise<void> {
  const closing = server
  server = undefined
  for (const socket of sockets) socket.destroy()
  if (closing !== undefined) await new Promise((resolve) => closing.close(resolve))
}

serveHelper(async (question: SickQuestion): Promise<number | SickCounts | undefined> => {
  switch (question.kind) {
    case 'listen':
      return listen()
    case 'fall':
      sickness = question.sickness
      if (sickness === 'refused') await close()
      return undefined
    case 'counts':
      return { connectionsMax, requests }
    default:
      return undefined
  }
})
