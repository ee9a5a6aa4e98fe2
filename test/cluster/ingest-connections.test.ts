/** What a producer may send on one connection: requests one behind the other, bodies that cannot be read, an early end. */
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { text as textOf } from 'node:stream/consumers'
import { test } from 'node:test'
import { privateBodyBytesMax } from '../../src/api/limits.ts'
import { botOf, freshBotOf } from '../support/server/bot-of.ts'
import { RawConnection } from '../support/producers/raw-http.ts'
import { sharedServer } from '../support/server/shared-server.ts'

const shared = sharedServer()

test('a path of the private API that cannot be decoded gets an error of the private API, whichever worker owns the bot', async (t) => {
  const server = await shared()
  // The connection stays at the worker of its first request, so one of the others is forwarded.
  const connection = RawConnection.to(server.privateUrl)
  t.after(() => connection.socket.destroy())
  for (const path of ['%zz', `${botOf(0)}/d%ead-letters`, `${botOf(1)}/d%ead-letters`]) {
    connection.write(
      `GET /v1/bots/${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${server.key}\r\n\r\n`,
    )
    const { status, body } = await connection.answer()
    assert.equal(status, 404, `${path}: ${body}`)
    assert.equal(JSON.parse(body).error.code, 'NOT_FOUND')
  }
})

test('a body that cannot be read fails alone, and later requests on its connection succeed', async (t) => {
  const server = await shared()
  const head = `HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${server.key}\r\n`
  const refused = [
    ['POST /v1/bots', '{,}', 400],
    ['POST /v1/bots', 'x'.repeat(privateBodyBytesMax + 1), 413],
    ['PUT /v1/bots/100', '{,}', 405],
  ] as const
  for (const [line, body, expected] of refused) {
    const connection = RawConnection.to(server.privateUrl)
    t.after(() => connection.socket.destroy())
    connection.write(
      `${line} ${head}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}` +
        `GET /healthz ${head}\r\n`,
    )
    const { status, body: refusal } = await connection.answer()
    assert.equal(status, expected, refusal)
    assert.ok('error' in JSON.parse(refusal))
    assert.equal((await connection.answer()).status, 200)
  }
})

test('pipelined pushes are stored in their order, including a large one that a thread checks', async (t) => {
  const server = await shared()
  const { botId } = await server.register()
  const connection = RawConnection.to(server.privateUrl)
  t.after(() => connection.socket.destroy())
  const texts = [400_000, 1, 400_000, 1, 1].map((length) => 'x'.repeat(length))
  for (const text of texts) {
    const body = JSON.stringify({ message: { text } })
    connection.write(
      `POST /v1/bots/${botId}/updates HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${server.key}\r\n` +
        `Content-Length: ${body.length}\r\n\r\n${body}`,
    )
  }
  const ids: number[] = []
  for (const text of texts) {
    const { status, body } = await connection.answer()
    assert.equal(status, 200, `${text.length}: ${body}`)
    ids.push(JSON.parse(body).update_id)
  }
  const first = ids[0] ?? 0
  assert.deepEqual(ids, [first, first + 1, first + 2, first + 3, first + 4])
})

test('a producer that closes its sending side after its request still gets a response', async () => {
  const server = await shared()
  for (const botId of [freshBotOf(0), freshBotOf(1)]) {
    await server.register(botId)
    const { hostname, port } = new URL(server.privateUrl)
    const socket = connect(Number(port), hostname)
    const answer = textOf(socket)
    socket.end(
      `POST /v1/bots/${botId}/updates HTTP/1.1\r\nHost: localhost\r\n` +
        `Authorization: Bearer ${server.key}\r\nContent-Length: 14\r\n\r\n{"message":{}}`,
    )
    assert.match(await answer, /^HTTP\/1.1 200 [\s\S]*{"update_id":\d+}$/)
  }
})
