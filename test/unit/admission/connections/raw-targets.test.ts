import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { headerBytesMax } from '../../../../src/http/limits.ts'
import { RawTargets } from '../../../../src/admission/connections/raw-targets.ts'
import { refuseBytes } from '../../../../src/worker/worker-servers.ts'
import { type RawConnection, RawServer } from '../../../support/producers/raw-http.ts'

const raw = new RawServer(
  (request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const { method, url, headers } = request
      const body = Buffer.concat(chunks).toString()
      response.end(JSON.stringify([method, url, headers['x'] ?? '', body]))
    })
  },
  { maxHeaderSize: headerBytesMax },
)
const rawTargets = new RawTargets()
raw.server.on('clientError', (error, socket) => {
  const left = rawTargets.goOn(raw.server, socket, error)
  if (left !== undefined) refuseBytes('bot', left, socket)
})

before(() => raw.listen())
after(() => raw.close())

const pause = () => new Promise((resolve) => setTimeout(resolve, 30))

async function nextOf(connection: RawConnection): Promise<unknown> {
  const { status, body } = await connection.answer()
  return status === 200 ? JSON.parse(body) : [status, body]
}

test('a target with bytes above 0x7f is taken as its percent-encoding, on new and kept connections', async () => {
  const client = raw.connect()
  for (const [target, expected] of [
    ['/é', '/%C3%A9'],
    ['/plain', '/plain'],
    ['/?text=Привет&x=%C3', '/?text=%D0%9F%D1%80%D0%B8%D0%B2%D0%B5%D1%82&x=%C3'],
    ['http://h/a?é', 'http://h/a?%C3%A9'],
  ]) {
    client.write(`GET ${target} HTTP/1.1\r\nHost: h\r\nX: é\r\n\r\n`)
    const x = Buffer.from('é').toString('latin1')
    assert.deepEqual(await nextOf(client), ['GET', expected, x, ''])
  }
})

test('bytes of headers and bodies stay as they are, also where they look like a request line', async () => {
  const client = raw.connect()
  const body = 'é\r\nGET /é HTTP/1.1\r\nHost: h\r\n\r\n'
  const length = Buffer.byteLength(body)
  const post = (target: string) =>
    `POST ${target} HTTP/1.1\r\nHost: h\r\nX: GET /z\r\nContent-Length: ${length}\r\n\r\n${body}`
  const chunked = `POST /ü HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nGET /é\r\n0\r\n\r\n`
  client.write(post('/é') + post('/b') + chunked.replace('6\r\n', '7\r\n') + post('/ö'))
  assert.deepEqual(await nextOf(client), ['POST', '/%C3%A9', 'GET /z', body])
  assert.deepEqual(await nextOf(client), ['POST', '/b', 'GET /z', body])
  assert.deepEqual(await nextOf(client), ['POST', '/%C3%BC', '', 'GET /é'])
  assert.deepEqual(await nextOf(client), ['POST', '/%C3%B6', 'GET /z', body])
})

test('many pipelined requests are answered one by one, in order', async () => {
  const client = raw.connect()
  const count = 2_000
  const targets = Array.from({ length: count }, (_, nth) =>
    nth % 3 === 0 ? `/${nth}` : `/é${nth}`,
  )
  client.write(targets.map((target) => `GET ${target} HTTP/1.1\r\nHost: h\r\n\r\n`).join(''))
  for (const target of targets) {
    assert.deepEqual(await nextOf(client), ['GET', encodeURI(target), '', ''])
  }
})

test('a line whose end comes in later packets is put together, and what follows is not lost', async () => {
  const client = raw.connect()
  for (const pieces of [
    ['GET /?text=П', 'р', 'ивет HTTP/1.1\r\nHost: h\r\n\r\nGET /ö HTTP/1.1\r\nHost: h\r\n\r\n'],
    [
      'GET /?text=Пр',
      'ивет HTTP/1.1',
      '\r',
      '\n',
      'Host: h\r\n\r\nGET /ö HT',
      'TP/1.1\r\nHost: h\r\n\r\n',
    ],
  ]) {
    for (const piece of pieces) {
      client.write(piece)
      await pause()
    }
    assert.deepEqual(await nextOf(client), ['GET', encodeURI('/?text=Привет'), '', ''])
    assert.deepEqual(await nextOf(client), ['GET', '/%C3%B6', '', ''])
  }
})

test('a line that began in an earlier packet is refused with what to do', async () => {
  for (const pieces of [
    ['GET /?text=', 'é HTTP/1.1\r\nHost: h\r\n\r\n'],
    ['PROP', 'PATCH /é HTTP/1.1\r\nHost: h\r\n\r\n'],
  ]) {
    const client = raw.connect()
    for (const piece of pieces) {
      client.write(piece)
      await pause()
    }
    const answer = await client.answer()
    assert.equal(answer.status, 400)
    assert.match(answer.body, /percent-encode the bytes above 0x7f/)
    assert.equal(answer.headers['connection'], 'close')
    await client.ended()
  }
})

test('other bad bytes of a target, and a line or a head that is too long, are refused as ever', async () => {
  for (const [line, status] of [
    ['GET /é\u0001 HTTP/1.1\r\nHost: h\r\n\r\n', 400],
    // A byte above 0x7f, as far from the end of the line as the bad one is from its beginning, is no target.
    ['GET /aé\u0001 HTTP/1.1\r\nX: GET /yyyyé HTTP/1.1\r\nHost: h\r\n\r\n', 400],
    ['GET /\u0001é HTTP/1.1\r\nHost: h\r\n\r\n', 400],
    ['GET /é b HTTP/1.1\r\nHost: h\r\n\r\n', 400],
    ['GET /é HTTP/9.9\r\nHost: h\r\n\r\n', 400],
    ['GET /é HTTP/1.1\r\nHost h\r\n\r\n', 400],
    ['FOO /é HTTP/1.1\r\nHost: h\r\n\r\n', 400],
    [`GET /${'é'.repeat(headerBytesMax / 2)} HTTP/1.1\r\nHost: h\r\n\r\n`, 431],
    [`GET /${'é'.repeat(headerBytesMax)}`, 431],
    [`GET /${'é'.repeat(headerBytesMax / 4)} HTTP/1.1\r\nHost: h\r\n\r\n`, 431],
  ] as const) {
    assert.equal((await raw.exchange(line)).status, status, line.slice(0, 30))
  }
})

test('after a tunnel or a broken request behind such a target nothing is left open', async () => {
  const line = 'GET /é HTTP/1.1\r\nHost: h\r\n\r\n'
  const tunnel = raw.connect()
  tunnel.write(`${line}CONNECT x:1 HTTP/1.1\r\nHost: x:1\r\n\r\n`)
  await tunnel.ended()
  const broken = raw.connect()
  broken.write(`${line}nonsense\r\n\r\n`)
  await broken.ended()
})
