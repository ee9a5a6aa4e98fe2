import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { endWithList, endWithText } from '../../../src/http/end-with-list.ts'

type Answer = (request: IncomingMessage, response: ServerResponse) => void

const headTime = /Date: [^\r]+/

async function serve(t: TestContext, answer: Answer): Promise<number> {
  const server = createServer(answer)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it listens on a port
  return (server.address() as AddressInfo).port
}

function client(t: TestContext, port: number): Socket {
  const socket = connect(port, '127.0.0.1')
  t.after(() => socket.destroy())
  return socket
}

/** Returns everything that arrives until the other side ends the connection. */
async function textOf(socket: Socket): Promise<string> {
  const chunks: Buffer[] = []
  socket.on('data', (chunk) => chunks.push(chunk))
  await once(socket, 'end')
  return Buffer.concat(chunks).toString()
}

async function bytesOf(socket: Socket, length: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
    chunks.push(chunk)
    bytes += chunk.length
    if (bytes >= length) break
  }
  return Buffer.concat(chunks)
}

const requestLines = (method: string, version = '1.1', rest = 'Connection: close\r\n'): string =>
  `${method} / HTTP/${version}\r\nHost: localhost\r\n${rest}\r\n`

function writeHead(response: ServerResponse, length: number): void {
  response.writeHead(200, ['Content-Type', 'application/json', 'Content-Length', `${length}`])
}

const kept = ['slices of ', 'the window: ', 'ä'.repeat(500)].map((text) => Buffer.from(text))
const list = { head: '[', tail: ']', slices: kept, slicesBytes: Buffer.concat(kept).length }

function longList(letter: string, bytes: number): typeof list {
  return { ...list, slices: [Buffer.alloc(bytes, letter)], slicesBytes: bytes }
}

for (const [name, request] of [
  ['that is kept open', requestLines('GET', '1.1', '') + requestLines('GET')],
  ['that is closed', requestLines('GET')],
  [
    'of HTTP/1.0',
    requestLines('GET', '1.0', 'Connection: keep-alive\r\n') + requestLines('GET', '1.0'),
  ],
  ['to HEAD', requestLines('HEAD')],
] as const) {
  test(`a response on a connection ${name} has the bytes that node:http would send`, async (t) => {
    const texts: string[] = []
    for (const isDirect of [true, false]) {
      const port = await serve(t, (_request, response) => {
        const text = 'grün'
        writeHead(response, Buffer.byteLength(text))
        if (isDirect) endWithText(response, text, 'utf8')
        else response.end(text)
      })
      const socket = client(t, port)
      socket.write(request)
      texts.push((await textOf(socket)).replaceAll(new RegExp(headTime, 'g'), 'Date: then'))
    }
    assert.equal(texts[0], texts[1])
    assert.match(texts[0] ?? '', /^HTTP\/1.1 200 OK\r\n/)
  })
}

for (const bytes of [10, 60_000, 70_000, 4_000_000]) {
  test(`a list of ${bytes} bytes is whole, and its response finishes once`, async (t) => {
    let finishes = 0
    const port = await serve(t, (_request, response) => {
      response.on('finish', () => {
        finishes += 1
      })
      writeHead(response, bytes + 2)
      endWithList(response, longList('x', bytes))
      assert(response.headersSent)
    })
    const socket = client(t, port)
    socket.write(requestLines('GET', '1.1', '') + requestLines('GET'))
    const text = await textOf(socket)
    const bodies = text.split('\r\n\r\n').map((part) => part.replace(/HTTP\/1.1 [\s\S]*$/, ''))
    assert.deepEqual(bodies, ['', `[${'x'.repeat(bytes)}]`, `[${'x'.repeat(bytes)}]`])
    assert.equal(finishes, 2)
  })
}

test('slices of any bytes are sent one after the other', async (t) => {
  const port = await serve(t, (_request, response) => {
    writeHead(response, list.slicesBytes + 2)
    endWithList(response, list)
  })
  const socket = client(t, port)
  socket.write(requestLines('GET'))
  const text = await textOf(socket)
  assert.equal(
    text.slice(text.indexOf('\r\n\r\n') + 4),
    `[slices of the window: ${'ä'.repeat(500)}]`,
  )
})

test('pipelined calls get responses in their order, whichever is ready first', async (t) => {
  const waiting: ServerResponse[] = []
  const port = await serve(t, (_request, response) => {
    waiting.push(response)
    if (waiting.length < 3) return
    for (const [index, each] of [...waiting.entries()].toReversed()) {
      writeHead(each, 1)
      endWithText(each, String(index), 'latin1')
    }
  })
  const socket = client(t, port)
  const open = requestLines('GET', '1.1', '')
  socket.write(open + open + requestLines('GET'))
  const text = await textOf(socket)
  assert.deepEqual(
    [...text.matchAll(/\r\n\r\n(\d)/g)].map(([, digit]) => digit),
    ['0', '1', '2'],
  )
})

test('bytes that a client does not read yet are not overwritten by responses to others', async (t) => {
  const bytes = 60_000
  const events = new EventEmitter()
  const blocked = once(events, 'blocked')
  let sent = 0
  let finishes = 0
  const port = await serve(t, (request, response) => {
    writeHead(response, bytes + 2)
    if (request.headers['x-client'] !== 'slow') {
      endWithList(response, longList('b', bytes))
      return
    }
    sent += 1
    response.once('finish', () => {
      finishes += 1
      events.emit('finished')
    })
    endWithList(response, longList('a', bytes))
    if (request.socket.writableLength > 0) events.emit('blocked')
  })
  const slow = client(t, port)
  slow.pause()
  const call = (): void => void slow.write(requestLines('GET', '1.1', 'X-Client: slow\r\n'))
  events.on('finished', call)
  call()
  await blocked
  assert.equal(finishes, sent - 1)
  events.off('finished', call)

  const other = client(t, port)
  for (let index = 0; index < 3; index++) {
    other.write(requestLines('GET', '1.1', ''))
    const answer = (await bytesOf(other, bytes + 2)).toString()
    assert(answer.endsWith(`[${'b'.repeat(bytes)}]`))
  }
  const text = (await bytesOf(slow, sent * (bytes + 2))).toString()
  assert(!text.includes('bb'), 'the memory of an answer was used for another one')
  assert(text.includes(`[${'a'.repeat(bytes)}]HTTP/1.1 200 OK`))
  if (finishes < sent) await once(events, 'finished')
})

test('nothing is written to a client that has disconnected', async (t) => {
  const events = new EventEmitter()
  const gone = once(events, 'gone')
  const port = await serve(t, (request, response) => {
    request.socket.once('close', () => {
      writeHead(response, 2)
      endWithText(response, '{}', 'latin1')
      events.emit('gone')
    })
  })
  const socket = client(t, port)
  socket.write(requestLines('GET', '1.1', ''))
  socket.end()
  await gone
})
