/**
 * Tokens and the envelope (protocol.md §2 and 3) on raw sockets. Refusals are paced per client address, so each case uses another
 * address in X-Real-Ip, which is believed on a loopback connection.
 */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { makeToken } from '../../src/api/token.ts'
import {
  assertRefused,
  exchange,
  RawBot,
  type Reply,
  requestBytes,
} from '../support/bots/raw-bot.ts'
import { RawConnection } from '../support/producers/raw-http.ts'
import { freshAddress } from '../support/server/fresh-address.ts'
import { type Server, startServer } from '../support/server/server.ts'
import { sharedServer } from '../support/server/shared-server.ts'
import { botOf, freshBotOf } from '../support/server/bot-of.ts'

const shared = sharedServer()

interface TimedReply extends Reply {
  readonly tookMs: number
}

/** Sends a GET of the path from this client address. */
async function get(server: Server, path: string, address = freshAddress()): Promise<TimedReply> {
  const startMs = performance.now()
  const call = { verb: 'GET', headers: [`X-Real-Ip: ${address}`] }
  const reply = await exchange(server, ...requestBytes(path, call))
  return { ...reply, tookMs: performance.now() - startMs }
}

test('invalid tokens are refused in the order that the protocol defines', async (t) => {
  const server = await startServer(t, { flags: ['--filter=0/2'] })
  const even = 2 * botOf(0, 3)
  const { token } = await server.register(even)
  const [, secret = ''] = token.split(':')
  const invalid = 'Unauthorized: invalid token specified'
  const unallowed = 'Misdirected Request: unallowed token specified'
  const cases: readonly (readonly [string, number, string])[] = [
    [`0${token}`, 401, invalid],
    [`${even}:${'x'.repeat(90)}`, 401, invalid],
    [`${even}`, 401, invalid],
    [`${even}%2F:${secret}`, 401, invalid],
    [`${even}x:${secret}`, 421, unallowed],
    [`:${secret}`, 421, unallowed],
    [`-${even}:${secret}`, 401, invalid],
    [makeToken(even + 1, randomBytes), 421, unallowed],
    [`${even + 1}:short`, 421, unallowed],
    [`98:${secret}`, 401, invalid],
    [`${2 ** 52}:${secret}`, 401, invalid],
    [`${even}:${secret.slice(1)}`, 401, invalid],
    [`${even}:${secret.slice(0, -1)}$`, 401, invalid],
    [`${even}:${secret.slice(1, 2)}${secret.slice(0, 1)}${secret.slice(2)}x`, 401, invalid],
    [`${even}:${flipped(secret)}`, 401, invalid],
    [makeToken(even, randomBytes), 401, 'Unauthorized'],
    [makeToken(even + 2, randomBytes), 401, 'Unauthorized'],
  ]
  for (const [wrong, status, description] of cases) {
    for (const path of [`/bot${wrong}/getMe`, `/bot${wrong}/test/nothing`]) {
      const answer = await get(server, path)
      assertRefused(answer, status, description)
      assert(answer.tookMs < 2_500, `${wrong} took ${answer.tookMs} ms`)
    }
  }
  const again = await server.restart({ flags: ['--filter=1/2'] })
  assertRefused(await get(again, `/bot${token}/getMe`), 421, unallowed)
  const push = await again.admin('POST', `/v1/bots/${even}/updates`, { message: {} })
  assert.deepEqual([push.status, push.body.error.code], [421, 'BOT_NOT_SERVED'])
  const pair = `{"bot_id":${even}}\n{"message":{}}\n`
  assert.match((await again.admin('POST', '/v1/updates', pair)).text, /"BOT_NOT_SERVED"/)
  assert.equal((await again.admin('DELETE', `/v1/bots/${even}`)).status, 200)
  const output = server.output() + again.output()
  for (const secretPart of [secret, flipped(secret)]) assert(!output.includes(secretPart))
})

/** Returns the secret with one character changed, so that its checksum does not match. */
function flipped(secret: string): string {
  return `${secret[0] === 'A' ? 'B' : 'A'}${secret.slice(1)}`
}

test('paths are accepted in every form that clients write', async () => {
  const server = await shared()
  for (const worker of [0, 1]) {
    const { botId, token } = await server.register(freshBotOf(worker))
    await server.push(botId, { message: {} }, 'test=true')
    const encoded = token.replace(':', '%3A')
    for (const path of [
      `/bot${token}/getMe`,
      `/bot${token}/GETME`,
      `/bot${token}/getme/`,
      `/bot${encoded}/getMe`,
      `/bot${encoded.replace('%3A', '%3a')}/getMe?x=1`,
      `/%62ot${token}/getMe`,
      `/bot${token}/%67etMe`,
      `http://bots.example/bot${token}/getMe`,
      `/bot${token}/test/getMe`,
    ]) {
      const answer = await get(server, path)
      assert.equal(answer.status, 200, `${path.replace(token, '<token>')}: ${answer.body}`)
      assert.equal(JSON.parse(answer.body).result.id, botId)
    }
    const inTest = await get(server, `/bot${token}/test/getUpdates`)
    assert.equal(JSON.parse(inTest.body).result.length, 1)
    assert.equal(JSON.parse((await get(server, `/bot${token}/getUpdates`)).body).result.length, 0)
    const nowhere = [
      `/bot${token}/nothing`,
      `/bot${token}/test/sendMessage`,
      // The owner is found although the path cannot be decoded as a whole.
      `/bot%3${token}/%2525`,
    ]
    for (const path of nowhere) {
      for (let round = 0; round < 3; round++) {
        const answer = await get(server, path, '198.51.100.1')
        assertRefused(answer, 404, /^Not Found: method not found/)
        assert(answer.tookMs < 2_500, 'a 404 is never held')
      }
    }
  }
  for (const path of ['/', '/favicon.ico', '/bot', '/bot123:x', '/v1/bots', '/healthz', '/%zz']) {
    for (let round = 0; round < 2; round++) {
      assertRefused(await get(server, path, '198.51.100.1'), 404, 'Not Found')
    }
  }
})

test('a wrong address of a framework is explained in the refusal', async () => {
  const server = await shared()
  const { token } = await server.register(freshBotOf(0))
  const cases = [
    [`//bot${token}/getMe`, 404, 'Not Found: the address of the server ends with a slash too many'],
    [
      `/${token}/getMe`,
      404,
      'Not Found: expected /bot<token>/METHOD, got no "bot" before the token',
    ],
    [
      `/bot/${token}/getMe`,
      401,
      'Unauthorized: invalid token specified: expected it right after "/bot", got a slash',
    ],
  ] as const
  for (const [path, status, description] of cases) {
    assertRefused(await get(server, path, '198.51.100.7'), status, description)
  }
})

test('broken and oversized requests get an error in the envelope with the reason, and the server continues', async () => {
  const server = await shared()
  for (const worker of [0, 1]) {
    const { botId, token } = await server.register(freshBotOf(worker))
    // Without it, polls that repeat the last offset would wait.
    await server.push(botId, { message: {} })
    const post = `POST /bot${token}/getUpdates HTTP/1.1\r\nHost: x\r\n`
    const json = `${post}Content-Type: application/json\r\n`
    const cases: readonly (readonly [number, RegExp, ...string[]])[] = [
      [400, /^Bad Request/, 'HELLO\r\n\r\n'],
      [400, /^Bad Request/, '\0\0\0\r\n'],
      [400, /^Bad Request/, `${post}Bad Header: x\r\n\r\n`],
      [400, /^Bad Request/, `${post}Content-Length: x\r\n\r\n`],
      [400, /^Bad Request/, `${post}Transfer-Encoding: chunked\r\n\r\nzz\r\n`],
      [400, /^Bad Request/, `${json}Content-Length: 5\r\n\r\n{"a":`],
      [
        400,
        /^Bad Request/,
        `${post}Content-Type: multipart/form-data\r\nContent-Length: 3\r\n\r\nabc`,
      ],
      [400, /^Bad Request/, `${json}Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc`],
      [413, /./, `${json}Content-Length: ${3 << 20}\r\n\r\n`, 'x'.repeat(3 << 20)],
      [431, /./, `${post}X-Large: ${'x'.repeat(70 * 1024)}\r\n\r\n`],
      [431, /./, `GET /${'x'.repeat(9_000)} HTTP/1.1\r\n\r\n`],
    ]
    for (const [status, description, ...pieces] of cases) {
      const answer = await exchange(server, ...pieces)
      assertRefused(answer, status, description)
      assert(!answer.body.includes(token))
    }
    for (const body of ['', 'null', '[]', '{}', '{"nested":{"a":[1]},"limit":"5"}']) {
      const answer = await exchange(server, `${json}Content-Length: ${body.length}\r\n\r\n${body}`)
      assert.equal(answer.status, 200, `${body}: ${answer.body}`)
    }
    const expected = RawConnection.to(server.botUrl)
    expected.write(`${json}Expect: 100-continue\r\nContent-Length: 2\r\n\r\n`)
    expected.write('{}')
    assert.equal((await expected.answer()).status, 200)
    expected.socket.destroy()
    const upgrade = await exchange(
      server,
      `${post}Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nContent-Length: 0\r\n\r\n`,
    )
    assert.equal(upgrade.status, 200)
  }
  assert(!/"level":60/.test(server.output()), server.output())
  assert.equal(server.workerPids().length, 2)
})

test('only GET and POST run a method, and any other verb changes nothing and gets 405', async () => {
  const server = await shared()
  for (const bot of await RawBot.registerBoth(server, 2)) {
    const ids = await bot.ids('getUpdates')
    const calls = [
      `getUpdates?offset=${(ids[1] ?? 0) + 1}`,
      'deleteWebhook?drop_pending_updates=true',
      'test/getMe',
      'sendMessage',
    ]
    for (const verb of ['PUT', 'DELETE', 'OPTIONS', 'PATCH', 'TRACE', 'PROPFIND']) {
      for (const target of calls) {
        const reply = await bot.call(target, { verb })
        assertRefused(reply, 405, /expected GET or POST/)
        assert.equal(reply.headers['allow'], 'GET, POST')
      }
    }
    // A token is not revealed by this, and an unknown method stays 404.
    for (const token of ['1:x', makeToken(bot.botId, randomBytes)]) {
      assertRefused(
        await bot.ask(`/bot${token}/getMe`, { verb: 'PUT' }),
        405,
        /expected GET or POST/,
      )
    }
    assertRefused(await bot.ask('/favicon.ico', { verb: 'PUT' }), 404, 'Not Found')
    for (const target of calls) {
      const connection = await bot.open()
      const [head = ''] = requestBytes(`/bot${bot.token}/${target}`, { verb: 'HEAD' })
      connection.write(String(head).replace('\r\n', '\r\nConnection: close\r\n'))
      const answer = await text(connection.socket)
      assert.match(answer, /^HTTP\/1\.1 405 [\s\S]*\r\nAllow: GET, POST\r\n/)
      assert.equal(answer.indexOf('\r\n\r\n'), answer.length - 4)
    }
    assert.deepEqual(await bot.freshIds('getUpdates'), ids)
  }
})

test('the private API accepts no verbs except its own', async () => {
  const server = await shared()
  const { botId } = await server.register(freshBotOf(0))
  await server.push(botId, { message: {} })
  for (const verb of ['HEAD', 'OPTIONS', 'PUT', 'PATCH', 'TRACE', 'PROPFIND']) {
    for (const path of ['', '/dead-letters', '/pause', '/updates', '/signing-keys']) {
      if (verb === 'PATCH' && path === '') continue // The only call of its own.
      const answer = await server.admin(verb, `/v1/bots/${botId}${path}`)
      assert.equal(answer.status, 405, `${verb} ${path}`)
    }
  }
  const { pending, paused } = (await server.admin('GET', `/v1/bots/${botId}`)).body
  assert.deepEqual([pending, paused ?? false], [1, false])
})

test('no header is overlooked, neither after 1,000 others nor if Connection names it', async () => {
  const server = await shared()
  for (const bot of await RawBot.registerBoth(server)) {
    for (const headers of [Array(1_500).fill('X: y'), ['Connection: content-type, host']]) {
      const call = { headers, type: 'application/json', body: '{"url":"ht tp:"}' }
      const reply = await bot.call('setWebhook', call)
      assertRefused(reply, 400, 'Bad Request: invalid webhook URL specified')
    }
  }
})

test('refusals to one address are paced for all workers together', async () => {
  const server = await shared()
  const { token } = await server.register(freshBotOf(0))
  const address = freshAddress()
  const wrong = [0, 1].map((worker) => `/bot${makeToken(botOf(worker, 3), randomBytes)}/getMe`)
  // Concurrent calls: on a busy machine, sequential ones might be more than 3 s apart.
  const paced = [...wrong, '/bot12:x/getMe', ...wrong].map((path) => get(server, path, address))
  assert((await get(server, wrong[1] ?? '')).tookMs < 2_500, 'another address does not wait')
  const valid = await get(server, `/bot${token}/getMe`, address)
  assert.equal(valid.status, 200)
  assert(valid.tookMs < 2_500, 'a valid token does not wait')
  for (const answer of await Promise.all(paced)) assertRefused(answer, 401, /^Unauthorized/)
  await assertOneAtOnce(paced)
})

async function assertOneAtOnce(answers: readonly Promise<{ readonly tookMs: number }>[]) {
  const [first = 0, ...others] = (await Promise.all(answers))
    .map(({ tookMs }) => tookMs)
    .toSorted((a, b) => a - b)
  assert(first < 2_500, `the first took ${first} ms`)
  assert(others.length > 0)
  for (const tookMs of others) assert(tookMs >= 2_990, `another took ${tookMs} ms`)
}

function unknown(nth: number): string {
  return `/bot${makeToken(botOf(nth % 2, 5 + nth), randomBytes)}/getMe`
}

test('after 20 unknown tokens in a minute an address gets 429, but a valid token is always accepted', async () => {
  const server = await shared()
  const { token } = await server.register(freshBotOf(0))
  const address = freshAddress()
  const malformed = Array.from({ length: 10 }, () => get(server, '/bot123:x/getMe', address))
  const first = await Promise.all(
    Array.from({ length: 20 }, (_, nth) => get(server, unknown(nth), address)),
  )
  for (const answer of first) assertRefused(answer, 401, 'Unauthorized')
  for (const answer of await Promise.all(malformed)) assert.equal(answer.status, 401)
  for (const answer of await Promise.all(
    [20, 21].map((nth) => get(server, unknown(nth), address)),
  )) {
    const { retry_after: seconds } = JSON.parse(answer.body).parameters
    assertRefused(answer, 429, `Too Many Requests: retry after ${seconds}`)
    assert(Number.isInteger(seconds) && seconds > 0 && seconds <= 60, answer.body)
    assert.equal(answer.headers['retry-after'], `${seconds}`)
  }
  const valid = await get(server, `/bot${token}/getMe`, address)
  assert.equal(valid.status, 200)
  assert(valid.tookMs < 2_500)
  assertRefused(await get(server, unknown(22)), 401, 'Unauthorized')
})

test('IPv6 clients count by their network, and X-Real-Ip must be an address', async () => {
  const server = await shared()
  const wrong = '/bot123:x/getMe'
  await Promise.all(
    [
      ['2600:1:2:3::1', '2600:1:2:3:ffff::2'],
      ['2600:1:2:4::1', '2600:1:2:4::1'],
      // Both count as the loopback address.
      ['nobody', 'somebody'],
    ].map((pair) => assertOneAtOnce(pair.map((address) => get(server, wrong, address)))),
  )
})

test('CONNECT gets the same response as any unknown path', async () => {
  const server = await shared()
  for (const url of [server.botUrl, server.privateUrl]) {
    const { hostname, port } = new URL(url)
    const socket = connect(Number(port), hostname)
    socket.write('CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n')
    assert.match(await text(socket), /^HTTP\/1.1 404 [\s\S]*Not Found"}/)
  }
})
