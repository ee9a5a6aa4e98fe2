/** Clients that end their side right after their request, as `nc -N` does. */
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { type TestContext, test } from 'node:test'
import { RawConnection } from '../support/producers/raw-http.ts'
import { botOf } from '../support/server/bot-of.ts'
import { startServer } from '../support/server/server.ts'

/** Sends the bytes and the end of the client's side at once. */
function halfClosed(t: TestContext, url: string, bytes: string): RawConnection {
  const { hostname, port } = new URL(url)
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true })
  socket.end(bytes)
  t.after(() => socket.destroy())
  return new RawConnection(socket)
}

test('a half-closed client gets its answer from either worker, and its waiting poll ends', async (t) => {
  const server = await startServer(t, { workers: 2 })
  const bots = [await server.register(botOf(0)), await server.register(botOf(1))]
  const [first] = bots
  const key = `Host: localhost\r\nAuthorization: Bearer ${server.key}\r\n`
  for (const bot of bots) {
    const body = '{"message":{"chat":{"id":1},"text":"x"}}'
    const push = `POST /v1/bots/${bot.botId}/updates HTTP/1.1\r\n${key}Content-Length: ${body.length}\r\n\r\n${body}`
    // A request before it decides which worker gets the connection, so that one of the two is forwarded.
    const reads = `GET /v1/bots/${first?.botId} HTTP/1.1\r\n${key}\r\n`
    const pushing = halfClosed(t, server.privateUrl, reads + push)
    assert.equal((await pushing.answer()).status, 200)
    assert.equal((await pushing.answer()).status, 200)
    const me = `GET /bot${first?.token}/getMe HTTP/1.1\r\nHost: x\r\n\r\n`
    const polls = [0, 2].map(
      (offset) =>
        `GET /bot${bot.token}/getUpdates?timeout=50&offset=${offset}&é HTTP/1.1\r\nHost: x\r\n\r\n`,
    )
    const polling = halfClosed(t, server.botUrl, `${me}${polls[0]}`)
    assert.equal((await polling.answer()).status, 200)
    const [update] = JSON.parse((await polling.answer()).body).result
    assert.equal(update.message.text, 'x')
    const waiting = polls[0]?.replace('offset=0', `offset=${update.update_id + 1}`)
    const startMs = performance.now()
    const given = halfClosed(t, server.botUrl, `${me}${waiting}`)
    assert.equal((await given.answer()).status, 200)
    assert.deepEqual(JSON.parse((await given.answer()).body).result, [])
    assert.ok(performance.now() - startMs < 25_000)
  }
})

test('a half-closed stream of pushes gets all its results', async (t) => {
  const server = await startServer(t, { workers: 2 })
  const bots = [await server.register(botOf(0)), await server.register(botOf(1))]
  const lines = bots
    .map(({ botId }) => `{"bot_id":${botId}}\n{"message":{"chat":{"id":1},"text":"é"}}\n`)
    .join('')
  const bytes = Buffer.byteLength(lines).toString(16)
  const key = `Host: localhost\r\nAuthorization: Bearer ${server.key}\r\nConnection: close\r\n`
  const stream = halfClosed(
    t,
    server.privateUrl,
    `POST /v1/updates HTTP/1.1\r\n${key}Transfer-Encoding: chunked\r\nContent-Type: application/x-ndjson\r\n\r\n${bytes}\r\n${lines}\r\n0\r\n\r\n`,
  )
  const chunks: Buffer[] = []
  stream.socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  await stream.ended()
  const text = Buffer.concat(chunks).toString()
  assert.equal(text.match(/"update_id"/g)?.length, 2, text)
})
