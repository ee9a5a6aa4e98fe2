import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { mayLoseWhatFollows } from '../../../../src/admission/connections/pipeline-limit.ts'
import { RawServer } from '../../../support/producers/raw-http.ts'

const raw = new RawServer((request, response) => {
  response.end(String(mayLoseWhatFollows(request)))
})

before(() => raw.listen())
after(() => raw.close())

const offer = 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n'
const next = 'GET /next HTTP/1.1\r\nHost: h\r\n\r\n'

function post(headers: string, body = ''): string {
  return `POST /first HTTP/1.1\r\nHost: h\r\n${headers}\r\n${body}`
}

test('nothing is lost after an offer that arrived alone, nor after a request without an offer', async () => {
  for (const bytes of [
    post(offer),
    post(`${offer}Content-Length: 2\r\n`, '[]'),
    post('Upgrade: h2c\r\n') + next,
    post('Connection: keep-alive\r\nUpgrade: h2c\r\n') + next,
    post('Connection: Upgrade\r\n') + next,
  ]) {
    assert.equal((await raw.exchange(bytes)).body, 'false', bytes)
  }
})

test('bytes that arrived with an offer, or may have, are known to be lost', async () => {
  for (const bytes of [
    post(offer) + next,
    post(offer) + next.slice(0, 5),
    post(`${offer}Content-Length: 2\r\n`, '[]') + next,
    // The rest of the body, and the bytes after it, arrive later.
    post(`${offer}Content-Length: 99\r\n`, '[]'),
    post(`${offer}Transfer-Encoding: chunked\r\n`, '0\r\n\r\n'),
    post('Connection: keep-alive\r\nConnection: UPGRADE\r\nUpgrade: websocket\r\n') + next,
  ]) {
    assert.equal((await raw.exchange(bytes)).body, 'true', bytes)
  }
})

test('a piece that begins in the end of the head of an offer does not decide', async () => {
  const bytes = post(offer)
  for (const cut of [1, 2, 3]) {
    const connection = raw.connect()
    connection.write(bytes.slice(0, -cut))
    // Another complete request makes the parser read the two pieces separately.
    await raw.exchange(post(''))
    connection.write(bytes.slice(-cut) + next)
    assert.equal((await connection.answer()).body, 'true')
    connection.socket.destroy()
  }
})
