/**
 * What bot frameworks need from the server, point by point: how it reads requests (1 to 6). The files beside this one
 * have the other points.
 *
 * Each point is tested over a connection to the bot's worker and over one to the other worker, which forwards. Most
 * tests check the effect of `limit`, because every client sends it in some form.
 */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { form, json, multipart, part, parts } from '../support/bots/read-params.ts'
import { assertRefused, RawBot, type RawCall, type Reply } from '../support/bots/raw-bot.ts'
import type { Server } from '../support/server/server.ts'
import { serverMust } from '../support/server/server-must.ts'

serverMust('Server MUST: requests', [
  ['1. GET and POST accept query, form, multipart and JSON alike, and the body wins', verbs],
  [
    '2. Content types are recognized in any case and with parameters, and an unknown one is no error',
    contentTypes,
  ],
  ['3. Empty JSON means no parameters, and every value is the same as its text', jsonBodies],
  ['4. Multipart of every unusual shape is read, down to zero bytes', multipartShapes],
  [
    '5. Chunked bodies of all types are accepted, and headers without a meaning here are ignored',
    framing,
  ],
  [
    '6. Names are accepted in any case, percent-encoded, with the test segment, and at the root',
    paths,
  ],
])

const bodies = (limit: number): readonly RawCall[] => [
  { type: form, body: `limit=${limit}` },
  { type: json, body: `{"limit":${limit}}` },
  { type: multipart, body: parts(part('limit', `${limit}`)) },
]

async function verbs(_t: TestContext, server: Server): Promise<void> {
  for (const bot of await RawBot.registerBoth(server, 5)) {
    for (const verb of ['GET', 'POST']) {
      assert.equal(await bot.givenCount('getUpdates', { verb }), 5)
      assert.equal(await bot.givenCount('getUpdates?limit=2', { verb }), 2, 'the query')
      for (const call of bodies(3)) {
        const what = `${verb} ${call.type}`
        assert.equal(await bot.givenCount('getUpdates', { ...call, verb }), 3, what)
        assert.equal(await bot.givenCount('getUpdates?limit=2', { ...call, verb }), 3, what)
        assert.equal(await bot.givenCount('getUpdates?timeout=0', { ...call, verb }), 3, what)
      }
      const other = { verb, type: form, body: 'timeout=0' }
      assert.equal(await bot.givenCount('getUpdates?limit=2', other), 2, 'both together')
    }
  }
}

async function contentTypes(_t: TestContext, server: Server): Promise<void> {
  const [asForm = '', asJson = '', asMultipart = ''] = bodies(3).map(({ body }) => String(body))
  const read = [
    ['application/json; charset=utf-8', asJson],
    ['Application/JSON;charset=UTF-8', asJson],
    ['text/plain, application/json', asJson],
    ['application/x-www-form-urlencoded; charset=utf-8', asForm],
    ['APPLICATION/X-WWW-FORM-URLENCODED', asForm],
    ['multipart/form-data; charset=utf-8; boundary="B"', asMultipart],
    ['Multipart/Form-Data;BOUNDARY=B', asMultipart],
  ]
  const foreign = ['text/plain', 'application/octet-stream', 'json', 'a/b/c;;', '*/*']
  const unread = [...foreign, '', undefined]
  for (const bot of await RawBot.registerBoth(server, 5)) {
    for (const [type = '', body = ''] of read) {
      const call = { headers: [`content-TYPE: ${type}`], body }
      assert.equal(await bot.givenCount('getUpdates?limit=2', call), 3, type)
    }
    const ignored = [
      ...foreign.map((type) => ({ type, body: asJson })),
      ...unread.flatMap((type) => [asForm, '{broken'].map((body) => ({ type, body }))),
    ]
    for (const call of ignored) {
      const count = await bot.givenCount('getUpdates?limit=2', call)
      assert.equal(count, 2, `${call.type} ${call.body}`)
    }
    for (const type of [form, json, multipart, ...unread]) {
      for (const verb of ['GET', 'POST']) {
        assert.equal(await bot.givenCount('getUpdates', { verb, type }), 5, type)
      }
    }
  }
}

/**
 * In the list, a server may ignore JSON that cannot be parsed, as the reference does; here the client gets an error (protocol.md §3).
 */
async function jsonBodies(_t: TestContext, server: Server): Promise<void> {
  for (const bot of await RawBot.registerBoth(server, 5)) {
    for (const body of ['', '{}', 'null', 'null\n', '[]', ' [ ] ', '{ }\r\n']) {
      for (const type of [json, form, multipart, 'text/plain', undefined]) {
        assert.equal(await bot.givenCount('getUpdates', { type, body }), 5, `${type} ${body}`)
      }
    }
    for (const type of [form, '', undefined]) {
      const call = { type, body: '{"limit":3}' }
      assert.equal(await bot.givenCount('getUpdates?limit=2', call), 3, `JSON, called ${type}`)
    }
    const blanks = ' '.repeat(30)
    for (const body of [`{${blanks}}`, `[${blanks}]`, `null${blanks}\n`]) {
      assert.equal(await bot.givenCount('getUpdates', { type: json, body }), 5, body)
    }
    for (const body of ['{"limit":3', '{limit:3}', '"text"', '3', '[1]', '\0']) {
      const reply = await bot.call('getUpdates', { type: json, body })
      assertRefused(reply, 400, /^Bad Request: (the body is not valid JSON|expected a JSON object)/)
    }
    for (const limit of [3, '3', 3.9, ' 3']) {
      const call = { type: json, body: JSON.stringify({ limit }) }
      assert.equal(await bot.givenCount('getUpdates', call), 3, JSON.stringify(limit))
    }
    for (const names of [['poll'], '["poll"]', ' [ "poll" ] ', ['POLL']]) {
      await bot.json('getUpdates?offset=5000000001', { allowed_updates: ['message'] })
      await bot.json('getUpdates?offset=5000000002', { allowed_updates: names })
      const what = JSON.stringify(names)
      assert.deepEqual((await bot.info())['allowed_updates'], ['poll'], what)
    }
    await bot.json('getUpdates?offset=5000000003', { allowed_updates: [] })
    for (const drop of [true, 'true', 1, '1']) {
      await bot.push(1)
      await bot.json('deleteWebhook', { drop_pending_updates: drop })
      assert.equal((await bot.info())['pending_update_count'], 0, JSON.stringify(drop))
    }
  }
}

async function multipartShapes(_t: TestContext, server: Server): Promise<void> {
  const limit = 'name="limit"'
  const disposition = `Content-Disposition: form-data; ${limit}`
  const shapes: readonly (readonly [string, number])[] = [
    ['', 5],
    ['--B--', 5],
    ['--B--\r\n', 5],
    ['\r\n--B--\r\n', 5],
    ['preamble\r\n--B--\r\nepilogue', 5],
    [`--B\r\n${disposition}\r\n\r\n3\r\n--B--\r\n`, 3],
    [`\r\n--B\r\n${disposition}\r\n\r\n3\r\n--B--`, 3],
    [`--B\r\nCONTENT-DISPOSITION: Form-Data; ${limit}\r\n\r\n3\r\n--B--\r\n`, 3],
    [`--B\r\ncontent-disposition:form-data;name="limit"\r\n\r\n3\r\n--B--\r\n`, 3],
    [`--B\r\ncontent-disposition:form-data;name=limit\r\n\r\n3\r\n--B--\r\n`, 3],
    [`--B\r\nContent-Type: text/plain; charset=utf-8\r\n${disposition}\r\n\r\n3\r\n--B--\r\n`, 3],
    [`--B\r\n${disposition}\r\nContent-Length: 1\r\n\r\n3\r\n--B--\r\n`, 3],
    [`--B\r\n${disposition}\r\nContent-Length: 0\r\n\r\n\r\n--B--\r\n`, 5],
    [`--B\n${disposition}\n\n3\n--B--\n`, 3],
  ]
  for (const bot of await RawBot.registerBoth(server, 5)) {
    for (const [body, count] of shapes) {
      for (const chunkBytes of [undefined, 7]) {
        const framed = chunkBytes === undefined ? {} : { chunkBytes }
        const call = { type: multipart, body, ...framed }
        assert.equal(await bot.givenCount('getUpdates', call), count, JSON.stringify(body))
      }
    }
    for (const name of ['filename=c.pem', 'filename="c.pem"', "filename*=UTF-8''c.pem"]) {
      const file = part('certificate', 'AA==', `; ${name}`)
      const reply = await bot.call('setWebhook', {
        type: multipart,
        body: parts(part('url', 'https://h.example'), file),
      })
      assertRefused(reply, 400, 'Bad Request: bad webhook: certificate is not in PEM format')
    }
  }
}

async function framing(_t: TestContext, server: Server): Promise<void> {
  const meaningless = [
    ['Connection: TE, close', 'TE: deflate,gzip;q=0.3'],
    ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQAAQAAAAIA'],
    ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=='],
    ['charset: utf-8', 'sec-fetch-mode: cors', 'Accept: */*', 'Cookie: a=b'],
    ['Accept-Encoding: gzip, deflate, br, zstd', 'User-Agent: é'],
    ['Expect: 100-continue'],
  ]
  for (const bot of await RawBot.registerBoth(server, 5)) {
    for (const body of bodies(3)) {
      for (const verb of ['GET', 'POST']) {
        for (const chunkBytes of [1, 5, 1_000]) {
          const call = { ...body, verb, chunkBytes }
          assert.equal(await bot.givenCount('getUpdates', call), 3, `${verb} ${body.type}`)
        }
        for (const headers of meaningless) {
          const call = { ...body, verb, headers }
          assert.equal(await bot.givenCount('getUpdates', call), 3, `${verb} ${headers.join()}`)
        }
      }
      const noChunk = { ...body, body: '', chunkBytes: 1 }
      assert.equal(await bot.givenCount('getUpdates', noChunk), 5, body.type)
    }
    for (const verb of ['GET', 'POST']) {
      for (const headers of meaningless) {
        const lengths = [[], ...(verb === 'GET' ? [['Content-Length: 0']] : [])]
        for (const length of lengths) {
          const reply = await bot.call('getMe', { verb, headers: [...headers, ...length] })
          assert.equal(reply.json.result?.id, bot.botId, `${verb} ${headers.join()}`)
        }
      }
    }
  }
}

/** `/TEST/` is not the test segment, as in the reference; other paths get 404 or 401 (protocol.md §2), never a crash. */
async function paths(_t: TestContext, server: Server): Promise<void> {
  for (const bot of await RawBot.registerBoth(server, 5)) {
    await server.push(bot.botId, { message: {} }, 'test=true')
    const ask = (path: string): Promise<Reply> => bot.ask(path, { verb: 'GET' })
    const [id = '', secret = ''] = bot.token.split(':')
    const plain = 'getMe GETME getme gEtMe getMe/ getMe? getMe?&&= get%4De get%4de'.split(' ')
    const inTest = 'test/getMe test/GETME/ test/getMe?'.split(' ')
    const good = [...plain, ...inTest].map((method) => `/bot${bot.token}/${method}`)
    const spelt = [
      `/bot${id}%3A${secret}/getMe`,
      `/bot${id}%3a${secret}/test/getMe`,
      `/%62ot${bot.token}/getMe`,
      `http://any.example/bot${bot.token}/getMe`,
      `HTTPS://any.example:444/bot${bot.token}/getMe?`,
    ]
    for (const path of [...good, ...spelt]) {
      const { status, json: answer } = await ask(path)
      assert.deepEqual([status, answer.result?.id], [200, bot.botId], path.replace(bot.token, 'T'))
    }
    const wrongMethods = '/getMe test//getMe TEST/getMe getMe%2F getMe%00 ./getMe'.split(' ')
    const wrong = [
      `/user${bot.token}/getMe`,
      `/BOT${bot.token}/getMe`,
      `//bot${bot.token}/getMe`,
      `/prefix/bot${bot.token}/getMe`,
      `/bot${bot.token}`,
      `/bot${bot.token}/`,
      ...wrongMethods.map((method) => `/bot${bot.token}/${method}`),
    ]
    for (const path of wrong) assert.equal((await ask(path)).status, 404, path)
    const border = await ask(`/bot${bot.token}%2Ftest/getMe`)
    assertRefused(border, 401, 'Unauthorized: invalid token specified')
    assert.equal((await bot.ids('test/getupdates')).length, 1, 'a queue of its own')
  }
}
