import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { endEmptyRequest } from '../../../src/http/end-empty-request.ts'

async function clientOf(t: TestContext, listener: RequestListener): Promise<Socket> {
  const server = createServer(listener)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it listens on a port
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  t.after(() => {
    socket.destroy()
    server.close()
  })
  return socket
}

/** Returns everything that arrives until the other side ends. */
async function textOf(socket: Socket): Promise<string> {
  let text = ''
  socket.on('data', (chunk) => (text += chunk.toString()))
  await once(socket, 'end')
  return text
}

const head = (line: string, ...more: string[]): string =>
  [line, 'Host: localhost', ...more, '', ''].join('\r\n')

test('a request without a body schedules no events, and its connection stays open', async (t) => {
  const events: string[] = []
  const requests: IncomingMessage[] = []
  const socket = await clientOf(t, (request, response) => {
    endEmptyRequest(request)
    requests.push(request)
    for (const event of ['readable', 'data', 'end', 'close', 'error']) {
      request.prependListener(event, () => events.push(event))
    }
    setImmediate(() => response.end(request.url))
  })
  // The second and third request are sent together.
  socket.write(head('GET /1 HTTP/1.1'))
  await once(socket, 'data')
  socket.write(
    head('POST /2 HTTP/1.1', 'Content-Length: 0') + head('GET /3 HTTP/1.1', 'Connection: close'),
  )
  const text = await textOf(socket)
  assert.match(text, /\/2.*\/3$/s)
  assert.deepEqual(events, [])
  assert.ok(requests.every(({ complete, readableEnded }) => complete && readableEnded))
})

test('a body is read as usual', async (t) => {
  for (const framing of ['Content-Length: 4', 'Transfer-Encoding: chunked']) {
    const socket = await clientOf(t, (request, response) => {
      endEmptyRequest(request)
      let body = ''
      request.on('data', (chunk) => (body += String(chunk)))
      request.on('end', () => response.end(`got ${body}`))
    })
    socket.write(head('POST / HTTP/1.1', framing, 'Connection: close'))
    socket.write(framing.startsWith('Content') ? 'body' : '4\r\nbody\r\n0\r\n\r\n')
    assert.match(await textOf(socket), /got body$/)
  }
})

test('the socket notices a client that disconnects before its response, and nothing fails', async (t) => {
  const closed: string[] = []
  const server = new EventEmitter()
  const socket = await clientOf(t, (request, response) => {
    endEmptyRequest(request)
    request.socket.once('close', () => closed.push('socket'))
    response.once('close', () => server.emit('over'))
    socket.destroy()
  })
  socket.write(head('GET / HTTP/1.1'))
  await once(server, 'over')
  assert.deepEqual(closed, ['socket'])
})

test('a request whose state has other names is left unchanged', () => {
  for (const state of [undefined, {}, { ended: 0 }]) {
    const request = { headers: {}, _dumped: false, _readableState: state }
    const before = structuredClone(request)
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- another version of Node might have this
    endEmptyRequest(request as unknown as IncomingMessage)
    assert.deepEqual(request, before)
  }
})
