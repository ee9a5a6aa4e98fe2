/** Answers over HTTP that go on for ever or cannot be read, for everything that the server asks of others. */
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import type { TestContext } from 'node:test'
import { portOf } from '../kit/port.ts'

/** An answer: what it begins with, and what is then repeated for ever. */
export interface HostileAnswer {
  readonly head: string
  readonly more: string
}

const chunked = 'HTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\n\r\n'

export const hostileAnswers = {
  'chunks of one byte': { head: chunked, more: '1\r\n \r\n' },
  'chunks of two bytes': { head: chunked, more: '2\r\n  \r\n' },
  'interim responses': { head: '', more: 'HTTP/1.1 103 Early Hints\r\n\r\n' },
  'interim responses with headers': {
    head: '',
    more: `HTTP/1.1 102 Processing\r\nA: ${'a'.repeat(15_000)}\r\n\r\n`,
  },
  'an extension of a chunk': { head: `${chunked}1;`, more: 'x' },
  'extensions of every chunk': {
    head: chunked,
    more: `40;${'x'.repeat(60)}\r\n${' '.repeat(64)}\r\n`,
  },
  'zeros before the size of a chunk': { head: chunked, more: '0' },
  'a header': { head: 'HTTP/1.1 500 No\r\nA: ', more: 'a' },
  headers: { head: 'HTTP/1.1 500 No\r\n', more: 'A: a\r\n' },
  'a trailer': { head: `${chunked}0\r\nA: `, more: 'a' },
  trailers: { head: `${chunked}0\r\n`, more: 'A: a\r\n' },
  'a status line': { head: 'HTTP/1.1 500 ', more: 'No' },
  'empty lines before the status line': { head: '', more: '\r\n' },
  'what is not HTTP': { head: '', more: 'SSH-2.0-OpenSSH\r\n' },
  'a size that no chunk can have': { head: chunked, more: 'f' },
} as const satisfies Readonly<Record<string, HostileAnswer>>

export type HostileName = keyof typeof hostileAnswers

export interface HostileServer {
  readonly origin: string
  /** The most that the other side of one connection has let it write, in bytes. */
  readonly writtenMax: () => number
  /** How many connections are open. */
  readonly open: () => number
}

const blockBytes = 64 * 1_024

/** Starts a server that answers every connection's first bytes like that, as fast as they are taken. */
export async function startHostileServer(
  t: Pick<TestContext, 'after'>,
  { head, more }: HostileAnswer,
): Promise<HostileServer> {
  const block = Buffer.from(more.repeat(Math.ceil(blockBytes / more.length)))
  const sockets = new Set<Socket>()
  let writtenMax = 0
  const server = createServer((socket) => {
    sockets.add(socket)
    const goOn = (): void => {
      while (!socket.destroyed && socket.write(block)) continue
      writtenMax = Math.max(writtenMax, socket.bytesWritten - socket.writableLength)
    }
    socket.on('error', () => undefined)
    socket.on('close', () => {
      sockets.delete(socket)
      writtenMax = Math.max(writtenMax, socket.bytesWritten)
    })
    socket.on('drain', goOn)
    socket.once('data', () => {
      socket.write(head)
      goOn()
      socket.resume()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return {
    origin: `http://127.0.0.1:${portOf(server)}`,
    writtenMax: () => writtenMax,
    open: () => sockets.size,
  }
}
