/** Parses requests with a Content-Length from the wire, for test servers that check every byte. */
import type { Socket } from 'node:net'

/** Calls `onRequest` with each complete request. */
export function readRequests(socket: Socket, onRequest: (request: string) => void): void {
  // One character is one byte, so lengths are those on the wire.
  let received = ''
  socket.on('error', () => undefined)
  socket.setEncoding('latin1').on('data', (text: string) => {
    received += text
    for (let length = lengthOf(received); length <= received.length; length = lengthOf(received)) {
      const request = Buffer.from(received.slice(0, length), 'latin1').toString()
      received = received.slice(length)
      onRequest(request)
    }
  })
}

/** Returns the length of the first request. A request without a Content-Length never becomes complete. */
function lengthOf(received: string): number {
  const headEnd = received.indexOf('\r\n\r\n')
  const [, length] = /\r\ncontent-length: (\d+)\r\n/i.exec(received.slice(0, headEnd + 2)) ?? []
  return headEnd === -1 || length === undefined ? Infinity : headEnd + 4 + Number(length)
}
