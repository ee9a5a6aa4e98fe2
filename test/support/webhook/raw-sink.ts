/** A webhook that records deliveries as they are on the wire and responds with bytes that need not be HTTP. */
import type { TestContext } from 'node:test'
import { startRawServer } from '../network/raw-server.ts'
import { readRequests } from '../producers/raw-requests.ts'

export interface RawRequest {
  readonly line: string
  /** As sent, except that names are in lower case and Content-Length is left out. */
  readonly headers: readonly string[]
  readonly body: string
}

export interface RawSink {
  readonly requests: readonly RawRequest[]
  /** HOST:PORT */
  readonly origin: string
}

const noContent = 'HTTP/1.1 204 No Content\r\n\r\n'

/** Starts a sink. Its last reply is repeated; an empty reply closes the connection. */
export async function startRawSink(
  t: TestContext,
  ...replies: readonly string[]
): Promise<RawSink> {
  const requests: RawRequest[] = []
  const { port } = await startRawServer(t, (socket) => {
    readRequests(socket, (request) => {
      const reply = replies[requests.length] ?? replies.at(-1) ?? noContent
      requests.push(partsOf(request))
      if (reply === '') socket.destroy()
      else socket.write(reply)
    })
  })
  return { requests, origin: `127.0.0.1:${port}` }
}

function partsOf(request: string): RawRequest {
  const headEnd = request.indexOf('\r\n\r\n')
  const [line = '', ...lines] = request.slice(0, headEnd).split('\r\n')
  const headers = lines.map((each) => each.replace(/^[^:]+/, (name) => name.toLowerCase()))
  return { line, headers, body: request.slice(headEnd + 4) }
}
