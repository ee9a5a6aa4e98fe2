/** Requests of real links, as a listener of node:http sees them. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { systemClock } from '../../../../src/kit/clock.ts'
import { headerBytesMax } from '../../../../src/http/limits.ts'
import { requestOrigin } from '../../../../src/http/connection-origin.ts'
import { endEmptyRequest } from '../../../../src/http/end-empty-request.ts'
import { watchClose } from '../../../../src/http/once-closed.ts'
import type { LinkCall } from '../../../../src/links/link/link-call.ts'
import { LinkListener } from '../../../../src/links/link/link-listener.ts'
import { linkSocketPath } from '../../../../src/links/link/connect-link.ts'
import { type ServedLink, serveLink } from '../../../../src/links/link/serve-link.ts'
import { LinkSet } from '../../../../src/links/link/link-set.ts'
import type { RequestFields } from '../../../../src/links/link/request-fields.ts'
import { ReceivedResponse } from '../../../support/producers/received-response.ts'
import { temporaryDirectory } from '../../../support/kit/temporary-directory.ts'
import { until } from '../../../support/kit/until.ts'

const worker = 0

type Listener = (...pair: Parameters<RequestListener>) => unknown

async function setUp(t: TestContext, listener: Listener) {
  const runDir = temporaryDirectory(t)
  const accepted: Socket[] = []
  const closed: Socket[] = []
  const served: ServedLink[] = []
  const server = new LinkListener(runDir, worker, (socket) => {
    accepted.push(socket)
    const link = serveLink(socket, {
      clock: systemClock,
      serve: (_kind, request, response) => listener(request, response),
      streamClosed: (stream) => void closed.push(stream),
    })
    served.push(link)
  })
  await server.listen()
  server.show()
  const links = new LinkSet(systemClock, (place) => ({
    path: linkSocketPath({ runDir, worker: place }),
  }))
  t.after(() => {
    links.close()
    server.close()
  })
  const call = (
    receiver: ReceivedResponse,
    fields: Partial<RequestFields> = {},
    hasBody = false,
  ): LinkCall => {
    const origin = { listener: 'bot', clientAddress: '192.0.2.1', hops: 1 } as const
    const all = { method: 'GET', url: '/', rawHeaders: [], origin, ...fields }
    return links.call({ place: worker, isFresh: false }, { fields: all, hasBody }, receiver)
  }
  const ask = (fields?: Partial<RequestFields>, body?: Buffer): Promise<ReceivedResponse> => {
    const receiver = new ReceivedResponse()
    const made = call(receiver, fields, body !== undefined)
    if (body !== undefined) made.end(body)
    return receiver.over()
  }
  return { ask, call, links, accepted, closed, served }
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = []
  for await (const part of request) parts.push(part)
  return Buffer.concat(parts)
}

test('a request has what its client sent, and the origin that its worker knows', async (t) => {
  const seen: IncomingMessage[] = []
  const { ask } = await setUp(t, (request, response) => {
    seen.push(request)
    response.end()
  })
  const rawHeaders = ['Host', 'x', 'X-A', '1', 'x-a', '2', 'Cookie', 'ü']
  await ask({ method: 'DELETE', url: '/bot1:x/a?b=c', rawHeaders })
  const [request] = seen
  assert.deepEqual(
    [request?.method, request?.url, request?.httpVersion, request?.rawHeaders],
    ['DELETE', '/bot1:x/a?b=c', '1.1', rawHeaders],
  )
  assert.deepEqual({ ...request?.headers }, { host: 'x', 'x-a': '1, 2', cookie: 'ü' })
  assert.equal(request?.complete, true)
  assert.deepEqual(request !== undefined && requestOrigin(request), {
    listener: 'bot',
    clientAddress: '192.0.2.1',
    hops: 1,
    shard: undefined,
  })
})

test('bodies of both directions arrive whole, however they are written', async (t) => {
  const body = Buffer.alloc(3_000_000, Buffer.from(Array.from({ length: 251 }, (_, at) => at)))
  const { ask } = await setUp(t, async (request, response) => {
    const received = await bodyOf(request)
    switch (request.url ?? '') {
      case '/whole':
        response.writeHead(200, { 'Content-Length': received.length }).end(received)
        return
      case '/chunks':
        for (let at = 0; at < received.length; at += 99_999) {
          response.write(received.subarray(at, at + 99_999))
        }
        response.end()
        return
      default:
        response.cork()
        response.write(received.toString('latin1'), 'latin1')
        response.end()
    }
  })
  for (const url of ['/whole', '/chunks', '/text']) {
    const { head, body: received } = await ask({ method: 'POST', url }, body)
    assert.equal(head?.status, 200)
    assert(received.equals(body), url)
  }
})

test('a listener that expects no body may end its request early', async (t) => {
  const { ask } = await setUp(t, (request, response) => {
    endEmptyRequest(request)
    response.writeHead(200, ['Content-Length', '2']).end('ok')
  })
  for (let nth = 0; nth < 3; nth++) assert.equal((await ask()).body.toString(), 'ok')
})

test('without a body the end of a request comes at once', async (t) => {
  const { ask } = await setUp(t, async (request, response) => {
    assert.equal((await bodyOf(request)).length, 0)
    response.end('end')
  })
  assert.equal((await ask()).body.toString(), 'end')
})

test('a HEAD has the head of its response, and no body', async (t) => {
  const { ask } = await setUp(t, (_request, response) => {
    response.writeHead(200, { 'Content-Length': 5 }).end('hello')
  })
  const { head, body } = await ask({ method: 'HEAD' })
  assert.deepEqual([head?.bodyBytes, body.length], [5, 0])
})

test('a request whose client leaves is closed at the owner', async (t) => {
  const events: string[] = []
  const responses: ServerResponse[] = []
  const { call } = await setUp(t, (request, response) => {
    responses.push(response)
    request.socket.once('close', () => events.push('socket'))
    response.once('close', () => events.push('response'))
  })
  const given = call(new ReceivedResponse())
  await until(() => responses.length === 1)
  given.destroy()
  await until(() => events.length === 2)
  assert.equal(responses[0]?.writableFinished, false)
})

test('with its link all requests of the link are closed', async (t) => {
  let closed = 0
  const { call, accepted } = await setUp(t, (request) => {
    request.socket.once('close', () => (closed += 1))
  })
  const receivers = [new ReceivedResponse(), new ReceivedResponse()]
  for (const receiver of receivers) call(receiver)
  await until(() => accepted.length === 1)
  await new Promise((resolve) => setTimeout(resolve, 20))
  accepted[0]?.destroy()
  for (const receiver of receivers) assert((await receiver.over()).error instanceof Error)
  assert.equal(closed, 2)
})

test('a body that is cut off is an error of its request, not its end', async (t) => {
  const outcomes: string[] = []
  const { call } = await setUp(t, (request) => {
    bodyOf(request).then(
      () => outcomes.push('whole'),
      () => outcomes.push('cut off'),
    )
  })
  const made = call(new ReceivedResponse(), { method: 'POST' }, true)
  made.write(Buffer.from('half'))
  await new Promise((resolve) => setTimeout(resolve, 20))
  made.destroy()
  await until(() => outcomes.length === 1)
  assert.deepEqual(outcomes, ['cut off'])
})

test('a response that its listener breaks off is lost', async (t) => {
  const { ask } = await setUp(t, (request, response) => {
    if (request.url === '/begun') response.write('begun', () => response.destroy())
    else request.socket.destroy()
  })
  for (const url of ['/begun', '/']) assert((await ask({ url })).error instanceof Error, url)
})

test('a body that nobody reads is held back, and read on later', async (t) => {
  const requests: IncomingMessage[] = []
  const { call } = await setUp(t, (request, response) => {
    requests.push(request)
    request.pause()
    request.once('end', () => response.end('done'))
  })
  const receiver = new ReceivedResponse()
  const made = call(receiver, { method: 'POST' }, true)
  const piece = Buffer.alloc(10_000)
  made.write(piece)
  await until(() => requests.length === 1)
  let sent = 1
  while (made.write(piece)) {
    sent += 1
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
  assert(sent < 1_000, `${sent} pieces went through`)
  let received = 0
  requests[0]?.on('data', (bytes: Buffer) => (received += bytes.length))
  requests[0]?.resume()
  await until(() => receiver.drains > 1)
  made.end()
  assert.equal((await receiver.over()).body.toString(), 'done')
  assert.equal(received, (sent + 1) * piece.length)
})

test('a response that is not read is held back, and no other one', async (t) => {
  let written = 0
  const { call, ask } = await setUp(t, async (request, response) => {
    if (request.url === '/short') {
      response.end('short')
      return
    }
    for (; written < 200; written++) {
      if (!response.write(Buffer.alloc(100_000))) await once(response, 'drain')
    }
    response.end()
  })
  const slow = new ReceivedResponse()
  slow.mayGoOn = false
  const held = call(slow)
  await until(() => slow.parts.length > 0)
  let before = -1
  while (written > before) {
    before = written
    assert.equal((await ask({ url: '/short' })).body.toString(), 'short')
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  assert(written < 200, `${written} parts went through`)
  slow.mayGoOn = true
  held.resume()
  assert.equal((await slow.over()).body.length, 20_000_000)
})

test('a response before the end of its request is whole, and the link goes on', async (t) => {
  const { call, ask } = await setUp(t, (_request, response) => void response.end('early'))
  const receiver = new ReceivedResponse()
  const made = call(receiver, { method: 'POST' }, true)
  made.write(Buffer.from('some'))
  assert.equal((await receiver.over()).body.toString(), 'early')
  for (let nth = 0; nth < 3; nth++) assert.equal((await ask()).body.toString(), 'early')
})

test('a request and its response are closed when the response is out', async (t) => {
  const events: string[] = []
  const { ask, closed } = await setUp(t, (request, response) => {
    assert.equal(response.socket, request.socket)
    response.once('finish', () => events.push('finish'))
    response.once('close', () => events.push(`close, finished: ${response.writableFinished}`))
    response.end('ok')
  })
  await ask()
  await until(() => closed.length === 1)
  assert.deepEqual(events, ['finish', 'close, finished: true'])
})

test('a response goes out in one write, with its end', async (t) => {
  const { ask, accepted, closed } = await setUp(t, (_request, response) => {
    response.writeHead(200, { 'Content-Length': 4 })
    response.write('te')
    response.end('xt')
  })
  await ask()
  await until(() => closed.length === 1)
  const write = t.mock.method(accepted[0]!, 'write')
  assert.equal((await ask()).body.toString(), 'text')
  await until(() => closed.length === 2)
  assert.equal(write.mock.callCount(), 1)
})

test('a body as long as what one turn sends is not held back', async (t) => {
  const { ask, call } = await setUp(t, async (request, response) => {
    response.end(String((await bodyOf(request)).length))
  })
  await ask()
  const receiver = new ReceivedResponse()
  const made = call(receiver, { method: 'POST' }, true)
  for (let nth = 0; nth < 4; nth++) made.write(Buffer.alloc(30_000))
  await new Promise((resolve) => setTimeout(resolve, 50))
  made.end()
  assert.equal((await receiver.over()).body.toString(), '120000')
  assert.equal(receiver.drains, 1, 'it began, and was never held back')
})

test('a response is finished only when the system has it', async (t) => {
  const links: Socket[] = []
  const { ask, accepted } = await setUp(t, (request, response) => {
    // This is what a worker does after its last response.
    if (request.url === '/last') response.once('finish', () => links[0]?.destroySoon())
    response.end('ok')
  })
  await ask()
  links.push(...accepted)
  assert.equal((await ask({ url: '/last' })).body.toString(), 'ok')
})

test('a client that stops reading a long response holds up no later request', async (t) => {
  const { ask, call } = await setUp(t, (request, response) => {
    response.end(request.url === '/long' ? Buffer.alloc(1_500_000) : 'ok')
  })
  for (let nth = 0; nth < 3; nth++) {
    const slow = new ReceivedResponse()
    slow.mayGoOn = false
    call(slow, { url: '/long' })
    await until(() => slow.parts.length > 0)
    assert.equal((await ask({ url: '/ok' })).body.toString(), 'ok')
  }
})

test('a response whose client stops reading at its end is finished', async (t) => {
  const finished: string[] = []
  const { call } = await setUp(t, (_request, response) => {
    response.once('finish', () => finished.push('finish'))
    response.writeHead(200, { 'Content-Length': 400_000 })
    response.write(Buffer.alloc(200_000))
    response.end(Buffer.alloc(200_000))
  })
  const slow = new ReceivedResponse()
  slow.mayGoOn = false
  const held = call(slow)
  for (let nth = 0; !slow.isOver; nth++) {
    await new Promise((resolve) => setTimeout(resolve, 1))
    if (nth % 2 === 1) held.resume()
  }
  await until(() => finished.length === 1)
  assert.equal(slow.body.length, 400_000)
})

test('a head with as many headers as the parser accepts arrives whole', async (t) => {
  const seen: IncomingMessage[] = []
  const { ask, accepted } = await setUp(t, (request, response) => {
    seen.push(request)
    response.end()
  })
  // Each counts as a single byte to the parser.
  const rawHeaders: string[] = []
  for (let nth = 0; nth < headerBytesMax; nth++) rawHeaders.push('a', '')
  rawHeaders.push('Content-Length', '0')
  await ask({ method: 'POST', rawHeaders })
  assert.equal(seen[0]?.rawHeaders.length, rawHeaders.length)
  assert.equal(seen[0]?.headers['content-length'], '0')
  assert.equal((await ask()).error, undefined)
  assert.equal(accepted.length, 1)
})

test('a thousand requests at once get their own responses', async (t) => {
  const { ask } = await setUp(t, (request, response) => {
    setTimeout(() => response.end(request.url), Math.random() * 5)
  })
  const urls = Array.from({ length: 1_000 }, (_, nth) => `/${nth}`)
  const responses = await Promise.all(urls.map((url) => ask({ url })))
  assert.deepEqual(
    responses.map(({ body }) => body.toString()),
    urls,
  )
})

test('a link that is left serves what is open on it and what is still sent to it, and closes after that', async (t) => {
  const responses: ServerResponse[] = []
  const { ask, call, accepted, served } = await setUp(t, (request, response) => {
    if (request.url === '/slow') responses.push(response)
    else response.end('ok')
  })
  const slow = new ReceivedResponse()
  call(slow, { url: '/slow' })
  await until(() => responses.length === 1)
  served[0]?.leave()
  // The caller has not read the frame yet.
  assert.equal((await ask()).body.toString(), 'ok')
  assert.equal(accepted.length, 1)
  assert.equal((await ask()).body.toString(), 'ok')
  assert.equal(accepted.length, 2)
  responses[0]?.end('late')
  assert.equal((await slow.over()).body.toString(), 'late')
  await until(() => accepted[0]?.closed === true)
  assert.equal(accepted[1]?.closed, false)
})

test('a caller that leaves hurries what waits for it: before, afterward and on links to come', async (t) => {
  const waiting: ServerResponse[] = []
  const { ask, links, accepted, served } = await setUp(t, (request, response) => {
    waiting.push(response)
    const hurried = (): void => void response.end('hurried')
    watchClose(request.socket, { closed: () => undefined, hurried })
  })
  const before = ask()
  await until(() => waiting.length === 1)
  links.leave()
  const all = [await before, await ask()]
  served[0]?.leave()
  await until(() => accepted[0]?.closed === true)
  all.push(await ask())
  assert.deepEqual(
    all.map(({ body }) => body.toString()),
    ['hurried', 'hurried', 'hurried'],
  )
  assert.equal(accepted.length, 2)
})

test('a caller hurries a single exchange, before and after it is open, and no other', async (t) => {
  const waiting: ServerResponse[] = []
  const { call } = await setUp(t, (request, response) => {
    waiting.push(response)
    const hurried = (): void => void response.end('hurried')
    watchClose(request.socket, { closed: () => undefined, hurried })
  })
  const other = new ReceivedResponse()
  call(other)
  for (const isOpen of [false, true]) {
    const hurried = new ReceivedResponse()
    const count = waiting.length
    const made = call(hurried, { method: 'POST' }, true)
    made.end(Buffer.from('x'))
    if (isOpen) await until(() => waiting.length > count)
    made.hurry()
    assert.equal((await hurried.over()).body.toString(), 'hurried')
  }
  waiting[0]?.end('later')
  assert.equal((await other.over()).body.toString(), 'later')
})
