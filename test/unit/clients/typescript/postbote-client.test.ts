import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { test } from 'node:test'
import { inspect } from 'node:util'
import {
  clientDefaults,
  type ClientOptions,
  type Retry,
} from '../../../../clients/typescript/client-options.ts'
import {
  PostboteClient,
  type PostboteClientError,
} from '../../../../clients/typescript/postbote-client.ts'
import {
  answeringServer,
  cut,
  html,
  json,
  producerKey as key,
  refused,
  silence,
  stored,
} from '../../../support/webhook/answering-server.ts'
import { makeCertificate } from '../../../support/network/certificates.ts'
import { FakeClock, settle } from '../../../support/kit/fake-clock.ts'

const update = { message: { text: 'hello' } }

test('bots are created, read, given tokens and removed', async (t) => {
  const { client, received } = await answeringServer(t, [
    json({ bot_id: 4711, token: '4711:a' }),
    json({ bot_id: 4711, first_name: 'E', username: 'e', mode: 'polling', pending: 3, more: 1 }),
    json({ bot_id: 4711, token: '4711:b' }),
    json({ bot_id: 4711, removed: true }),
  ])
  const created = await client.createBot({ botId: 4711, firstName: 'E', username: 'e' })
  assert.deepEqual(created, { botId: 4711, token: '4711:a' })
  const state = { botId: 4711, firstName: 'E', username: 'e', mode: 'polling', pendingCount: 3 }
  assert.deepEqual(await client.getBot(4711), state)
  assert.equal((await client.rotateToken(4711, { overlapS: 60 })).token, '4711:b')
  await client.removeBot(4711)
  await client.close()
  assert.deepEqual(
    received.map(({ line, body }) => [line, body]),
    [
      ['POST /v1/bots', '{"bot_id":4711,"first_name":"E","username":"e"}'],
      ['GET /v1/bots/4711', ''],
      ['POST /v1/bots/4711/token', '{"overlap":60}'],
      ['DELETE /v1/bots/4711', ''],
    ],
  )
  for (const { headers } of received) assert.equal(headers.authorization, `Bearer ${key}`)
})

test('a bot is registered and renewed with a token of another server', async (t) => {
  const { client, received } = await answeringServer(t, [
    json({ bot_id: 4711, token: '4711:a' }),
    json({ bot_id: 4711, token: '4711:b' }),
  ])
  const created = await client.createBot({ firstName: 'E', username: 'e', token: '4711:a' })
  assert.deepEqual(created, { botId: 4711, token: '4711:a' })
  await client.rotateToken(4711, { token: '4711:b' })
  await client.close()
  assert.deepEqual(
    received.map(({ body }) => JSON.parse(body)),
    [
      { first_name: 'E', username: 'e', token: '4711:a' },
      { overlap: 0, token: '4711:b' },
    ],
  )
})

test('a push sends its options and a new idempotency key', async (t) => {
  const { client, received } = await answeringServer(t, [stored, json({ filtered: true }), stored])
  const options = { orderingKey: 'a b&c', ttlS: 60, isTest: true, idempotencyKey: 'mine' }
  const result = await client.push(7, update, options)
  assert.deepEqual(result, { isFiltered: false, updateId: 5, isDuplicate: false })
  assert.deepEqual(await client.push(7, update), { isFiltered: true })
  await client.push(7, update)
  const [first, second, third] = received.map(({ headers }) => headers['idempotency-key'])
  assert.equal(received[0]!.line, 'POST /v1/bots/7/updates?ordering_key=a+b%26c&ttl=60&test=true')
  assert.equal(received[0]!.body, JSON.stringify(update))
  assert.equal(first, 'mine')
  assert.match(String([second, third]), /^[\da-f-]{36},[\da-f-]{36}$/)
  assert.notEqual(second, third)
})

test('a push is repeated with the same key and bytes after lost connections and responses that allow it', async (t) => {
  const { client, received, retried } = await answeringServer(t, [
    cut,
    refused('TOO_MANY_KEYS', 429, { 'retry-after': '3' }),
    refused('OUTCOME_UNKNOWN', 503),
    html,
    json({ update_id: 5, duplicate: true }),
  ])
  const result = await client.push(7, update)
  assert.deepEqual(result, { isFiltered: false, updateId: 5, isDuplicate: true })
  assert.equal(new Set(received.map(({ body }) => body)).size, 1)
  assert.equal(new Set(received.map(({ headers }) => headers['idempotency-key'])).size, 1)
  assert.deepEqual(
    retried.map(({ error, attempt, delayMs }) => [error.code, attempt, delayMs]),
    [
      ['CONNECTION_LOST', 1, 50],
      ['TOO_MANY_KEYS', 2, 3_100],
      ['OUTCOME_UNKNOWN', 3, 200],
      ['UNEXPECTED_ANSWER', 4, 400],
    ],
  )
})

test('an exception of onRetry is uncaught, and its push continues', async (t) => {
  const uncaught: unknown[] = []
  const soon = queueMicrotask
  t.mock.method(globalThis, 'queueMicrotask', (work: () => void) => {
    soon(() => {
      try {
        work()
      } catch (error) {
        uncaught.push(error)
      }
    })
  })
  const mine = new Error('mine')
  const { client, clock } = await answeringServer(t, [html, stored], {
    onRetry: ({ delayMs }) => {
      void settle().then(() => clock.advance(delayMs))
      throw mine
    },
  })
  assert.equal((await client.push(7, update)).isFiltered, false)
  assert.deepEqual(uncaught, [mine])
})

test('an idempotency key is the same in a stream or is refused, because a header loses spaces at its ends', async (t) => {
  const { client, received } = await answeringServer(t, [])
  for (const idempotencyKey of [' a', 'a ', '', 'é']) {
    await assert.rejects(client.push(7, update, { idempotencyKey }), { code: 'BAD_REQUEST' })
  }
  assert.equal(received.length, 0)
})

test('an attempt without a response in time is given up and repeated', async (t) => {
  const { client, clock, retried, untilReceived } = await answeringServer(t, [silence, stored])
  const pushed = client.push(7, update)
  await untilReceived(1)
  await clock.advance(clientDefaults.timeoutMs)
  assert.equal((await pushed).isFiltered, false)
  assert.equal(retried[0]!.error.code, 'TIMEOUT')
})

for (const [code, status] of [
  ['BAD_UPDATE', 400],
  ['UNAUTHORIZED', 401],
  ['UNKNOWN_BOT', 404],
  ['IDEMPOTENCY_MISMATCH', 409],
  ['QUEUE_FULL', 507],
] as const) {
  test(`a push that is refused with ${code} rejects immediately`, async (t) => {
    const { client, received } = await answeringServer(t, [refused(code, status)])
    await assert.rejects(client.push(7, update), { code, status, isOutcomeUnknown: false })
    assert.equal(received.length, 1)
  })
}

test('a long Retry-After is returned to the caller and not waited for', async (t) => {
  const headers = { 'retry-after': '40000' }
  const { client, received } = await answeringServer(t, [refused('TOO_MANY_KEYS', 429, headers)])
  const pushed = client.push(7, update)
  await assert.rejects(pushed, { code: 'TOO_MANY_KEYS', retryAfterS: 40_000, isRetryable: true })
  assert.equal(received.length, 1)
})

test('a push is repeated up to its limit', async (t) => {
  const answers = Array.from({ length: 9 }, () => refused('STORE_UNAVAILABLE', 503))
  const { client, received } = await answeringServer(t, answers, { retries: 2 })
  await assert.rejects(client.push(7, update), { code: 'STORE_UNAVAILABLE', status: 503 })
  assert.equal(received.length, 3)
})

test('without a key a push is repeated only if nothing was stored', async (t) => {
  const { client, received } = await answeringServer(
    t,
    [refused('STORE_UNAVAILABLE', 503), refused('TOO_MANY_CONNECTIONS', 503), cut],
    { hasIdempotencyKeys: false },
  )
  const pushed = client.push(7, update)
  await assert.rejects(pushed, { code: 'CONNECTION_LOST', isOutcomeUnknown: true })
  assert.equal(received.length, 3)
  assert.equal(received[0]!.headers['idempotency-key'], undefined)
  await assert.rejects(client.createBot({ firstName: 'E', username: 'e' }), { code: 'INTERNAL' })
})

test('every call is repeated if the server could not be connected to, because nothing was sent', async () => {
  const retried: Retry[] = []
  const clock = new FakeClock()
  const client = new PostboteClient(
    {
      socketPath: '/nowhere/postbote.sock',
      key,
      retries: 3,
      onRetry: (retry) => {
        retried.push(retry)
        void settle().then(() => clock.advance(retry.delayMs))
      },
    },
    { clock, random: () => 1 },
  )
  const created = client.createBot({ firstName: 'E', username: 'e' })
  await assert.rejects(created, {
    code: 'CONNECTION_FAILED',
    isOutcomeUnknown: false,
    message:
      'The client could not connect to /nowhere/postbote.sock (ENOENT), and nothing was sent',
  })
  assert.deepEqual(
    retried.map(({ delayMs }) => delayMs),
    [100, 200, 400],
  )
  await client.close()
})

test('a server that was never reached is given up within 3 s, and one that was is waited for', async (t) => {
  const failures = async (url: string, isReached: boolean): Promise<number> => {
    const retried: number[] = []
    const clock = new FakeClock()
    const onRetry = ({ delayMs }: Retry): void => {
      retried.push(delayMs)
      void settle().then(() => clock.advance(delayMs))
    }
    const client = new PostboteClient({ url, key, onRetry }, { clock, random: () => 1 })
    if (isReached) {
      await client.getBot(100)
      await close()
    }
    await assert.rejects(client.push(100, update), { code: 'CONNECTION_FAILED' })
    await client.close()
    return retried.reduce((sum, each) => sum + each, 0)
  }
  const bot = '{"bot_id":100,"first_name":"E","username":"e","mode":"polling","pending":0}'
  const server = createServer((_request, response) => response.end(bot)).listen(0, '127.0.0.1')
  t.after(() => server.close())
  await once(server, 'listening')
  const address = server.address()
  assert(typeof address === 'object' && address !== null)
  const close = async (): Promise<void> => {
    server.close()
    server.closeAllConnections()
    await once(server, 'close')
  }
  const url = `http://127.0.0.1:${address.port}`
  assert((await failures(url, true)) > 20_000)
  const unreachedMs = await failures(url, false)
  assert(unreachedMs > 1_000 && unreachedMs < 3_000, `${unreachedMs}`)
})

test('a signal ends an attempt, and the wait between two', async (t) => {
  const { client, received, untilReceived } = await answeringServer(t, [silence, cut], {
    onRetry: () => stop.abort(),
  })
  const early = new AbortController()
  const pushed = client.push(7, update, { signal: early.signal })
  await untilReceived(1)
  early.abort(new Error('enough'))
  await assert.rejects(pushed, (error: PostboteClientError) => {
    assert.deepEqual([error.code, String(error.cause)], ['ABORTED', 'Error: enough'])
    assert.equal(error.isOutcomeUnknown, true)
    return true
  })
  const stop = new AbortController()
  const aborted = { code: 'ABORTED', isOutcomeUnknown: true }
  await assert.rejects(client.push(7, update, { signal: stop.signal }), aborted)
  assert.equal(received.length, 2)
})

test('a signal that is aborted before anything was sent leaves the outcome known', async (t) => {
  const stop = new AbortController()
  const { client, received } = await answeringServer(t, [refused('STORE_UNAVAILABLE', 503)], {
    onRetry: () => stop.abort(),
  })
  const nothingSent = { code: 'ABORTED', isOutcomeUnknown: false, message: /anything was sent$/ }
  await assert.rejects(client.push(7, update, { signal: AbortSignal.abort() }), nothingSent)
  assert.equal(received.length, 0)
  // The same holds before a retry if the first attempt stored nothing.
  await assert.rejects(client.push(7, update, { signal: stop.signal }), nothingSent)
  assert.equal(received.length, 1)
})

test('a push whose first attempt may have stored it says so, whatever the last attempt failed with', async (t) => {
  const answers = [cut, refused('STORE_UNAVAILABLE', 503, { 'retry-after': '3' })]
  const { client } = await answeringServer(t, answers, { retries: 1 })
  const unknown = { code: 'STORE_UNAVAILABLE', retryAfterS: 3, isOutcomeUnknown: true }
  await assert.rejects(client.push(7, update), unknown)
})

test('close waits for calls in progress and accepts no more', async (t) => {
  let held: ServerResponse | undefined
  const { client, untilReceived } = await answeringServer(t, [(response) => (held = response)])
  const pushed = client.push(7, update)
  await untilReceived(1)
  let isClosed = false
  const closed = client.close().then(() => (isClosed = true))
  await assert.rejects(client.push(7, update), { code: 'CLOSED' })
  assert.throws(() => client.openStream(), { code: 'CLOSED' })
  assert.equal(isClosed, false)
  held?.end('{"update_id":5}')
  assert.equal((await pushed).isFiltered, false)
  await closed
})

test('close gives up calls without a result in time, and immediately if a second call does not wait', async (t) => {
  const answers = [silence, silence, refused('STORE_UNAVAILABLE', 503, { 'retry-after': '3' })]
  const refusals = new EventEmitter()
  const { client, clock, received, untilReceived } = await answeringServer(t, answers, {
    onRetry: () => refusals.emit('told'),
  })
  const sent = [client.push(7, update), client.push(8, update)]
  await untilReceived(2)
  const pushes = [...sent, client.push(7, update)]
  await once(refusals, 'told')
  const unknown = { code: 'CLOSED', isOutcomeUnknown: true, message: /response arrived$/ }
  const expected = [unknown, unknown, { code: 'CLOSED', isOutcomeUnknown: false }]
  const told = pushes.map((push, at) => assert.rejects(push, expected[at]!))
  const closed = client.close({ timeoutMs: 1_000 })
  await clock.advance(999)
  assert.equal(await Promise.race([closed, settle().then(() => 'waits')]), 'waits')
  const atOnce = client.close({ timeoutMs: 0 })
  await clock.advance(0)
  await Promise.all(told)
  await Promise.all([closed, atOnce])
  assert.equal(received.length, 3)
  assert.equal(clock.timers, 0)
})

for (const [what, port] of [
  ['speaks no TLS', 'plain'],
  ['shows a certificate that nobody trusts', 'tls'],
] as const) {
  test(`nothing is sent to a server that ${what}`, async (t) => {
    const server = port === 'plain' ? createServer() : createTlsServer(makeCertificate('localhost'))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const address = server.address()
    assert(address !== null && typeof address === 'object')
    t.after(() => server.close())
    const client = new PostboteClient({
      url: `https://127.0.0.1:${address.port}`,
      key,
      retries: 0,
    })
    const failed = { code: 'CONNECTION_FAILED', isOutcomeUnknown: false }
    await assert.rejects(client.push(7, update), failed)
    await assert.rejects(client.openStream().push(7, update), failed)
    await client.close()
  })
}

test('no text of a failure contains the key', async (t) => {
  const { client } = await answeringServer(
    t,
    [refused('UNAUTHORIZED', 401), cut, json({ strange: key })],
    {
      retries: 0,
    },
  )
  for (let attempt = 0; attempt < 3; attempt++) {
    await assert.rejects(client.push(7, update), (error) => {
      assert(!inspect(error, { depth: 10, showHidden: true }).includes(key))
      return true
    })
  }
  assert(!inspect(client, { depth: 10 }).includes(key))
})

test('an error names options that cannot be used', () => {
  const bad: readonly (readonly [Partial<ClientOptions>, RegExp])[] = [
    [{ url: 'ftp://127.0.0.1' }, /^url: expected http/],
    [{ url: 'http://me:secret@127.0.0.1' }, /^url: (?!.*secret)/],
    [{ url: 'http://127.0.0.1', socketPath: '/a' }, /^url and socketPath/],
    [{ url: 'nonsense' }, /^url: /],
    [{ key: 'two words' }, /^key: (?!.*two)/],
    [{ key: process.env['NO_SUCH_KEY'] as string }, /^key: expected a key/],
    [{ retries: -1 }, /^retries: expected a whole number from 0, got -1/],
    [{ timeoutMs: 0.5 }, /^timeoutMs/],
    [{ retryDelayMsMin: 10, retryDelayMsMax: 9 }, /^retryDelayMsMax/],
  ]
  for (const [options, message] of bad) {
    assert.throws(() => new PostboteClient({ key, ...options }), { name: 'TypeError', message })
  }
  const client = new PostboteClient({ key: `${key}\n` })
  assert.throws(() => client.openStream({ pairsMax: 0 }), { message: /^pairsMax/ })
})

const unknown = (message: RegExp): object => ({ name: 'TypeError', message })
/** Every failure of a push is a PostboteClientError, so that a producer handles all of them in one place. */
const unsent = (message: RegExp): object => ({ code: 'BAD_REQUEST', status: 400, message })

test('an error names unknown options, as TypeScript would', async (t) => {
  const { client, received } = await answeringServer(t, [])
  const timeout = { key, timeout: 1 }
  assert.throws(() => new PostboteClient(timeout), unknown(/^timeout: unknown option; .*timeoutMs/))
  const pairs: object = { pairs: 1 }
  assert.throws(() => client.openStream(pairs), unknown(/^pairs: .* pairsMax, bytesMax$/))
  assert.throws(() => client.pushAll([], pairs), unknown(/^pairs:/))
  const orderingKey: object = { ordering_key: '1' }
  await assert.rejects(client.push(7, update, orderingKey), unsent(/^ordering_key: .* signal$/))
  const stream = client.openStream()
  await assert.rejects(stream.push(7, update, orderingKey), unsent(/^ordering_key:/))
  const { signal } = new AbortController()
  await assert.rejects(stream.push(7, update, { signal } as object), unsent(/^signal:/))
  for await (const { error } of client.pushAll([{ botId: 7, update, options: orderingKey }])) {
    assert.match(error?.message ?? '', /^ordering_key:/)
  }
  await assert.rejects(client.close({ timeout: 1 } as object), unknown(/^timeout:/))
  await client.close()
  assert.equal(received.length, 0)
})

test('a response that is not from Postbote gets an error that says so', async (t) => {
  const { client } = await answeringServer(t, [
    json({ hello: 1 }),
    (response) => response.end('<html>'),
    (response) => response.writeHead(404).end('<html>'),
    json({ error: { code: 'NEWER_THAN_THIS', message: '' } }, 400),
  ])
  for (const status of [undefined, undefined, 404, 400]) {
    await assert.rejects(client.push(7, update), { code: 'UNEXPECTED_ANSWER', status })
  }
})

test('the error for a push to the public listener points to the private one', async (t) => {
  const notFound = json({ ok: false, error_code: 404, description: 'Not Found' }, 404)
  const { client } = await answeringServer(t, [notFound])
  const message = /got status 404: expected url to be the address of the private listener$/
  await assert.rejects(client.push(7, update), { code: 'UNEXPECTED_ANSWER', message })
})
