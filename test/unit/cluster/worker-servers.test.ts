import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { refuseBytes } from '../../../src/cluster/worker-servers.ts'
import { headerBytesMax } from '../../../src/limits.ts'
import { type RawAnswer, RawServer } from '../../support/raw-http.ts'

const raw = new RawServer(
  (request, response) => {
    if (request.url !== '/partly') return
    response.writeHead(200, ['Content-Length', '100'])
    response.write('partly')
  },
  { maxHeaderSize: headerBytesMax },
)
raw.server.on('clientError', (error, socket) => refuseBytes('bot', error, socket))

before(() => raw.listen())
after(() => raw.close())

function assertEnvelope(answer: RawAnswer, status: number): void {
  assert.equal(answer.status, status)
  assert.equal(answer.headers['content-type'], 'application/json')
  const envelope: Record<string, unknown> = JSON.parse(answer.body)
  assert.equal(envelope['ok'], false)
  assert.equal(envelope['error_code'], status)
  assert.ok(typeof envelope['description'] === 'string' && envelope['description'] !== '')
}

test('broken HTTP is answered in the envelope with the reason, and the connection ends', async () => {
  const broken = [
    'nonsense\r\n\r\n',
    'GET /result HTTP/9.9\r\n\r\n',
    'GET /result HTTP/1.1\r\nHost h\r\n\r\n',
    'POST /result HTTP/1.1\r\nHost: h\r\nContent-Length: x\r\n\r\n',
    'POST /result HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n',
  ]
  for (const bytes of broken) {
    const answer = await raw.exchange(bytes)
    assertEnvelope(answer, 400)
    assert.match(answer.body, /"description":"Bad Request: [^"]+"/, bytes)
    assert.equal(answer.headers['connection'], 'close')
    assert.doesNotMatch(answer.body, /nonsense/)
  }
})

test('headers over 64 KiB get 431', async () => {
  const answer = await raw.exchange(
    `GET /result HTTP/1.1\r\nX: ${'x'.repeat(headerBytesMax)}\r\n\r\n`,
  )
  assertEnvelope(answer, 431)
})

test('broken HTTP behind a waiting request is answered, behind a begun answer it ends it', async () => {
  const waiting = raw.connect()
  waiting.write('GET /waits HTTP/1.1\r\nHost: h\r\n\r\nnonsense\r\n\r\n')
  assertEnvelope(await waiting.answer(), 400)
  const partly = raw.connect()
  const received: Buffer[] = []
  partly.socket.on('data', (chunk: Buffer) => received.push(chunk))
  partly.write('GET /partly HTTP/1.1\r\nHost: h\r\n\r\n')
  await new Promise((resolve) => partly.socket.once('data', resolve))
  partly.write('nonsense\r\n\r\n')
  await assert.rejects(partly.answer(), /closed after/)
  assert.doesNotMatch(Buffer.concat(received).toString(), /error_code/)
})

test('a reset connection is not written to', () => {
  const calls: string[] = []
  const socket = {
    writable: true,
    end: () => calls.push('end'),
    destroy: () => calls.push('destroy'),
  }
  const reset = Object.assign(new Error('reset'), { code: 'ECONNRESET' })
  // @ts-expect-error the part of a socket that is used
  refuseBytes('bot', reset, socket)
  // @ts-expect-error the part of a socket that is used
  refuseBytes('bot', new Error('broken'), { ...socket, writable: false })
  assert.deepEqual(calls, ['destroy', 'destroy'])
})
