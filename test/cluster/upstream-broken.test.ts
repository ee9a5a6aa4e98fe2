/** Responses of the upstream server that break off: a client sees the envelope, or the end of its connection. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { test } from 'node:test'
import { portOf } from '../support/kit/port.ts'
import { startServer } from '../support/server/server.ts'

const head = 'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n'
const chunked = `${head}Transfer-Encoding: chunked\r\n\r\n`
const broken: Readonly<Record<string, string>> = {
  'no body': `${head}Content-Length: 10\r\n\r\n`,
  'no chunk': chunked,
  'a broken chunk': `${chunked}zz\r\n`,
  'an endless trailer': `${chunked}0\r\n${`X-A: ${'a'.repeat(8_000)}\r\n`.repeat(8)}`,
}

test('a response that breaks off before its body begins becomes a 502 in the envelope', async (t) => {
  let answer = ''
  const upstream = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.once('data', () => socket.end(answer))
  })
  t.after(() => upstream.close())
  await once(upstream.listen(0, '127.0.0.1'), 'listening')
  const server = await startServer(t, {
    flags: [`--upstream=http://127.0.0.1:${portOf(upstream)}`],
  })
  const { token } = await server.register()
  for (const [name, bytes] of Object.entries(broken)) {
    answer = bytes
    const { status, headers, text } = await server.call(token, 'sendMessage', { chat_id: 1 })
    const envelope =
      /^{"ok":false,"error_code":502,"description":"Bad Gateway: the upstream server /
    assert.deepEqual([status, headers['content-type']], [502, 'application/json'], name)
    assert.equal(headers['content-length'], `${text.length}`, name)
    assert.match(text, envelope, name)
  }
  const { text } = await server.admin('GET', '/metrics')
  assert.match(text, /^postbote_upstream_failures_total 4$/m)
})
