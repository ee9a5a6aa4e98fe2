/** Pipelined calls of the private API, for bots of any worker. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { gzipSync } from 'node:zlib'
import { botOf, freshBotOf } from '../support/server/bot-of.ts'
import { type RawAnswer, RawConnection } from '../support/producers/raw-http.ts'
import { type Server, startServer } from '../support/server/server.ts'
import { sharedServer } from '../support/server/shared-server.ts'
import { until } from '../support/kit/until.ts'

const shared = sharedServer()

interface Call {
  readonly line: string
  readonly body?: string | Buffer
  readonly headers?: readonly string[]
}

function bytesOf({ line, body = '', headers = [] }: Call, { key }: Server): Buffer {
  const head = [
    `${line} HTTP/1.1`,
    'Host: localhost',
    `Authorization: Bearer ${key}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    ...headers,
  ]
  return Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), Buffer.from(body)])
}

/** Opens a connection that belongs to this worker, whatever bots its later calls name. */
async function connectionTo(
  t: TestContext,
  server: Server,
  worker: number,
): Promise<RawConnection> {
  const connection = RawConnection.to(server.privateUrl)
  t.after(() => connection.socket.destroy())
  connection.write(bytesOf({ line: `GET /v1/bots/${botOf(worker)}` }, server))
  await connection.answer()
  return connection
}

/** Some pushes take little time to read and check, and some take much. */
function push(botId: number, seq: number): Call {
  const line = `POST /v1/bots/${botId}/updates`
  const text = 'x'.repeat(seq % 50 === 0 ? 200_000 : 1)
  const body = JSON.stringify({ message: { seq, text } })
  return seq % 7 === 0
    ? { line, body: gzipSync(body), headers: ['Content-Encoding: gzip'] }
    : { line, body }
}

function idIn({ status, body }: RawAnswer): number {
  assert.equal(status, 200, body)
  return JSON.parse(body).update_id
}

test('pipelined pushes are stored in their order by either worker, including large and compressed ones', async (t) => {
  const server = await shared()
  const bots = [freshBotOf(0), freshBotOf(1)]
  for (const botId of bots) await server.register(botId)
  for (const worker of [0, 1]) {
    const connection = await connectionTo(t, server, worker)
    const pushes = 500
    for (let nth = 0; nth < pushes; nth++) {
      // Two for one bot, then two for the other.
      connection.write(bytesOf(push(bots[(nth >> 1) & 1]!, nth), server))
    }
    const next: (number | undefined)[] = [undefined, undefined]
    for (let nth = 0; nth < pushes; nth++) {
      const of = (nth >> 1) & 1
      const id = idIn(await connection.answer())
      assert.equal(id, next[of] ?? id, `push ${nth} over worker ${worker}`)
      next[of] = id + 1
    }
  }
})

test('a call sees the effects of the calls before it on its connection', async (t) => {
  const server = await shared()
  for (const [over, owner] of [
    [0, 0],
    [0, 1],
    [1, 0],
  ] as const) {
    const botId = freshBotOf(owner)
    await server.register(botId)
    const path = `/v1/bots/${botId}`
    const names = `"first_name":"A","username":"a"`
    const connection = await connectionTo(t, server, over)
    const large = JSON.stringify({ message: { text: 'x'.repeat(400_000) } })
    const calls: readonly (Call & { readonly expected: RegExp })[] = [
      { line: `POST ${path}/updates`, body: large, expected: /^{"update_id":\d+}/ },
      { line: `GET ${path}`, expected: /"pending":1,/ },
      { line: `POST ${path}/updates`, body: large, expected: /^{"update_id":\d+}/ },
      { line: `DELETE ${path}`, expected: /"removed":true/ },
      { line: 'POST /v1/bots', body: `{"bot_id":${botId},${names}}`, expected: /"token"/ },
      { line: `POST ${path}/updates`, body: large, expected: /^{"update_id":\d+}/ },
      {
        line: 'POST /v1/updates',
        body: `{"bot_id":${botId}}\n{"message":{}}\n`,
        expected: /"update_id":\d+/,
        headers: ['Connection: close'],
      },
    ]
    connection.write(Buffer.concat(calls.slice(0, -1).map((call) => bytesOf(call, server))))
    for (const { line, expected } of calls.slice(0, -1)) {
      assert.match((await connection.answer()).body, expected, `${line} over ${over} of ${owner}`)
    }
    const { body } = await server.admin('GET', path)
    assert.equal(body.pending, 1)
  }
})

test('pushes with keys that the successor of a killed owner gets again stay in their order', async (t) => {
  const server = await startServer(t, { workers: 2 })
  const botId = botOf(1, 1)
  await server.register(botId)
  const connection = await connectionTo(t, server, 0)
  const pushes = 300
  const owner = server.workerPids()[1] ?? 0
  let highest = 0
  let stored = 0
  const keyed = (nth: number): Call => ({
    ...push(botId, nth),
    headers: [...(push(botId, nth).headers ?? []), `Idempotency-Key: ${nth}`],
  })
  for (let nth = 0; nth < pushes; nth++) connection.write(bytesOf(keyed(nth), server))
  for (let nth = 0; nth < pushes; nth++) {
    if (nth === 20) process.kill(owner, 'SIGKILL')
    const answer = await connection.answer()
    if (answer.status === 200) {
      const id = idIn(answer)
      assert(id > highest, `push ${nth}: ${id} after ${highest}`)
      highest = id
      stored += 1
    } else {
      // The successor was not there in time.
      assert.equal(answer.status, 503, answer.body)
    }
  }
  assert(stored > 100, `${stored} were stored`)
  await until(() => server.workerPids().length === 2)
})

test('a reload keeps pushes in their order, whichever worker has their connection', async (t) => {
  const server = await startServer(t, { workers: 2 })
  const bots = [botOf(0, 1), botOf(1, 1)]
  for (const botId of bots) await server.register(botId)
  const isReloaded = (): boolean => server.output().includes('"msg":"reloaded"')
  process.kill(server.primaryPid, 'SIGHUP')
  const produce = async (over: number): Promise<number[]> => {
    const ids: number[] = []
    let connection = await connectionTo(t, server, over)
    for (let seq = 0; !isReloaded(); ) {
      const batch = Array.from({ length: 20 }, (_, nth) => push(bots[1 - over]!, seq + nth))
      connection.write(Buffer.concat(batch.map((call) => bytesOf(call, server))))
      for (let nth = 0; nth < batch.length; nth++) {
        const answer = await connection.answer()
        ids.push(idIn(answer))
        seq += 1
        // Calls after this one were not handled.
        if (answer.headers['connection'] !== 'close') continue
        connection = await connectionTo(t, server, over)
        break
      }
    }
    return ids
  }
  const lists = await Promise.all([produce(0), produce(1)])
  for (const ids of lists) {
    assert(ids.length > 40, `${ids.length} pushes`)
    const [first = 0] = ids
    assert.deepEqual(
      ids,
      ids.map((_, nth) => first + nth),
    )
  }
})
