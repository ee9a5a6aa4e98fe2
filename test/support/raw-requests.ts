/** Requests with a Content-Length as they are on the wire, for servers of tests that look at every byte. */
import type { Socket } from 'node:net'

/** Calls `onRequest` with each whole one. */
export function readRequests(socket: Socket, onRequest: (request: string) => void): void {
  // One byte, one character: lengths are those of the wire.
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

/** Of the request at the start; one without a Content-Length is never whole. */
function lengthOf(received: string): number {
  const headEnd = received.indexOf('\r\n\r\n')
  const [, length] = /\r\ncontent-length: (\d+)\r\n/i.exec(received.slice(0, headEnd + 2)) ?? []
  return headEnd === -1 || length === undefined ? Infinity : headEnd + 4 + Number(length)
}
