/** Checks of endpoints over real sockets: good ones, broken ones and hostile ones. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer as createHttpsServer } from 'node:https'
import type { Server } from 'node:net'
import { before, test, type TestContext } from 'node:test'
import { systemClock } from '../../../src/kit/clock.ts'
import { compileBlocklist, isBlocked } from '../../../src/http/blocklist.ts'
import { createConnector } from '../../../src/delivery/endpoint/connector.ts'
import { parseEndpoint } from '../../../src/delivery/endpoint/endpoint.ts'
import {
  checkEndpoint,
  type EndpointCheck,
  type EndpointCheckOptions,
} from '../../../src/delivery/endpoint-check.ts'
import { webhookConnectTimeoutMs, webhookResponseTimeoutMs } from '../../../src/delivery/limits.ts'
import type { WebhookNetwork } from '../../../src/delivery/endpoint/verify.ts'
import { FakeClock, settle } from '../../support/kit/fake-clock.ts'
import { freePort, portOf } from '../../support/kit/port.ts'
import { until } from '../../support/kit/until.ts'
import {
  type CertificateWishes,
  dateIn,
  issueCertificate,
  type KeyPair,
  makeCertificate,
} from '../../support/network/certificates.ts'
import { brokenOff, endless, notHttp } from '../../support/network/hostile-answers.ts'
import { startHostileServer } from '../../support/network/hostile-server.ts'
import { type RawServer, startRawServer } from '../../support/network/raw-server.ts'
import { isSignedWith } from '../../support/webhook/verify-signature.ts'
import { endpoint, ok, rawEndpoint } from '../../support/webhook/webhook-endpoints.ts'
import { loopbackNetwork } from '../../support/webhook/webhook-setup.ts'

/** Trusted like a public authority. */
let authority: KeyPair
let network: WebhookNetwork

before(() => {
  authority = issueCertificate({ name: 'Test Authority', isAuthority: true })
  const connect = createConnector(systemClock, undefined, () => [authority.cert])
  network = { ...loopbackNetwork, connect }
})

function check(url: string, more: Partial<EndpointCheckOptions> = {}): Promise<EndpointCheck> {
  return checkEndpoint({
    endpoint: parseEndpoint(url, { local: true }),
    secretHeaderNames: ['X-Secret-Token'],
    signing: { idPrefix: '4711-check-', keys: () => undefined },
    known: { addresses: [], foundMs: 0 },
    network,
    clock: systemClock,
    signal: new AbortController().signal,
    refusalOf: () => 'it is reserved',
    responseTextOf: () => ({ bytesMax: 1_024, secrets: () => [] }),
    ...more,
  })
}

/** The states of all steps, in their order. */
function states({ steps }: EndpointCheck): readonly string[] {
  return steps.map(({ state }) => state)
}

function textOf({ steps }: EndpointCheck, wanted: string): string {
  return steps.find(({ step }) => step === wanted)?.text ?? ''
}

async function unknownName(): Promise<never> {
  throw Object.assign(new Error('x'), { code: 'ENOTFOUND' })
}

function silentName(): Promise<never> {
  return new Promise(() => undefined)
}

async function refuseAll(addresses: readonly string[]): Promise<readonly boolean[]> {
  return addresses.map(() => false)
}

async function secureEndpoint(
  context: TestContext,
  wishes: Partial<CertificateWishes> = {},
): Promise<string> {
  const identity = issueCertificate({ name: 'bot.example', issuer: authority, ...wishes })
  return serve(context, identity)
}

async function serve(context: TestContext, identity: KeyPair): Promise<string> {
  const server = createHttpsServer(identity, (request, response) => {
    request.resume()
    response.end()
  })
  server.on('tlsClientError', () => undefined)
  await listen(context, server)
  context.after(() => server.closeAllConnections())
  return `https://bot.example:${portOf(server)}/hook`
}

async function listen(context: TestContext, server: Server): Promise<void> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  context.after(() => server.close())
}

test('a good endpoint passes each step, with its time, and gets one empty update that is none of its queue', async (context) => {
  const { url, received } = await endpoint(context, ok)
  const named = url.replace('127.0.0.1', 'user:pass@bot.example')
  const secretToken = 'the-secret'
  const checked = await check(named, { secretToken })
  assert.deepEqual(states(checked), ['ok', 'ok', 'ok', 'skipped', 'ok'])
  assert.deepEqual(
    checked.steps.map(({ step }) => step),
    ['name', 'addresses', 'connection', 'tls', 'post'],
  )
  for (const { state, durationMs } of checked.steps) {
    assert.equal(durationMs !== undefined && durationMs >= 0, state !== 'skipped')
  }
  assert.deepEqual([checked.status, textOf(checked, 'post')], [200, '200 OK'])
  assert.equal(textOf(checked, 'name'), 'bot.example has 1 address')
  assert.match(checked.advice, /nothing needs to be done/)
  assert.equal(received.length, 1)
  const [{ request, body } = assert.fail()] = received
  assert.deepEqual(JSON.parse(body), { update_id: 0 })
  assert.deepEqual(
    [request.method, request.url, request.headers['content-type']],
    ['POST', '/hook?x=1', 'application/json'],
  )
  assert.equal(request.headers['x-secret-token'], secretToken)
  assert.equal(request.headers.authorization, `Basic ${btoa('user:pass')}`)
  const shown = JSON.stringify(checked)
  for (const secret of [secretToken, 'pass', '/hook']) assert(!shown.includes(secret), secret)
})

test('a check is signed as deliveries are, with an id that no other has', async (context) => {
  const { url, received } = await endpoint(context, ok)
  const secret = Buffer.alloc(32, 7).toString('base64')
  const keys = [{ id: 'key_1', type: 'hmac-sha256', secret, createdAtMs: 0 } as const]
  const signing = { idPrefix: '4711-check-', keys: () => keys }
  assert.equal((await check(url, { signing })).status, 200)
  const [{ request, body } = assert.fail()] = received
  assert(isSignedWith(`whsec_${secret}`, request.headers, body))
  assert.match(String(request.headers['webhook-id']), /^4711-check-\d{13}$/)
})

test('a name that is unknown, an address in its place, and an ip_address are told apart', async (context) => {
  const { url, received } = await endpoint(context, ok)
  const unknown = { network: { ...network, lookup: unknownName } }
  const named = url.replace('127.0.0.1', 'bot.example')
  const failed = await check(named, unknown)
  assert.deepEqual(states(failed), ['failed', 'skipped', 'skipped', 'skipped', 'skipped'])
  assert.equal(textOf(failed, 'name'), 'Failed to resolve host: Name or service not known')
  assert.match(failed.advice, /bot\.example is in DNS/)
  assert.equal(received.length, 0)
  for (const checked of [
    await check(url, unknown),
    await check(named, { ...unknown, ipAddress: '127.0.0.1' }),
  ]) {
    assert.deepEqual(states(checked), ['skipped', 'ok', 'ok', 'skipped', 'ok'])
  }
})

test('an address that is refused is shown with the reason, and never connected to', async (context) => {
  const { url, received, server } = await endpoint(context, ok)
  let connections = 0
  server.on('connection', () => connections++)
  const ranges = compileBlocklist({ local: false, block: [], allow: [] })
  const judge = async (addresses: readonly string[]): Promise<readonly boolean[]> =>
    addresses.map((address) => !isBlocked(ranges, address))
  const named = url.replace('127.0.0.1', 'bot.example')
  const checked = await check(named, { network: { ...network, judge } })
  assert.deepEqual(states(checked), ['ok', 'failed', 'skipped', 'skipped', 'skipped'])
  assert.equal(textOf(checked, 'addresses'), 'IP address 127.0.0.1 is reserved')
  assert.deepEqual(checked.addresses, [{ address: '127.0.0.1', refusal: 'it is reserved' }])
  assert.match(checked.advice, /--allow-cidr/)

  // The listener has the address that is refused, and nobody has the other one.
  const some = await check(named, {
    network: {
      ...network,
      lookup: async () => ['127.0.0.1', '127.0.0.2'],
      judge: async (all) => all.map((each) => each !== '127.0.0.1'),
    },
  })
  assert.deepEqual(states(some), ['ok', 'ok', 'failed', 'skipped', 'skipped'])
  assert.equal(
    textOf(some, 'addresses'),
    '1 address allowed; 1 refused and never used, such as 127.0.0.1: it is reserved',
  )
  assert.deepEqual(some.addresses, [
    { address: '127.0.0.2', refusal: undefined },
    { address: '127.0.0.1', refusal: 'it is reserved' },
  ])
  assert.deepEqual([connections, received.length], [0, 0])
})

test('thousands of addresses are shown as few', async () => {
  const found = Array.from({ length: 6_000 }, (_, nth) => `10.${nth >> 8}.${nth & 255}.1`)
  const checked = await check('http://bot.example/', {
    network: { ...network, judge: refuseAll, lookup: async () => found },
  })
  assert.deepEqual(
    [checked.addresses.length, textOf(checked, 'name')],
    [32, 'bot.example has 6000 addresses'],
  )
})

test('the check says when deliveries still use an address of before', async (context) => {
  const { url } = await endpoint(context, ok)
  const nowMs = systemClock.monotonicMs()
  const usedStill = async (addresses: readonly string[], foundMs: number): Promise<boolean> => {
    const checked = await check(url, { known: { addresses, foundMs } })
    return textOf(checked, 'addresses').includes('deliveries still use 192.0.2.1')
  }
  assert.equal(await usedStill(['192.0.2.1'], nowMs), true)
  assert.equal(await usedStill(['192.0.2.1', '127.0.0.1'], nowMs), false)
  assert.equal(await usedStill(['192.0.2.1'], nowMs - 31 * 60_000), false)
})

test('a refused connection is told, and another address is used in its place', async (context) => {
  const refused = await check(`http://bot.example:${await freePort()}/`, {
    network: { ...network, lookup: async () => ['127.0.0.1', '127.0.0.2'] },
  })
  assert.deepEqual(states(refused), ['ok', 'ok', 'failed', 'skipped', 'skipped'])
  assert.equal(
    textOf(refused, 'connection'),
    '127.0.0.1: Connection refused; 1 other address failed, too',
  )
  const { url } = await endpoint(context, ok)
  const second = await check(url.replace('127.0.0.1', 'bot.example'), {
    network: { ...network, lookup: async () => ['127.0.0.9', '127.0.0.1'] },
  })
  assert.equal(second.status, 200)
  assert.match(textOf(second, 'connection'), /^to 127\.0\.0\.1:\d+$/)
})

test('the certificate is shown with its names and its end, also one that is refused', async (context) => {
  const good = await check(await secureEndpoint(context))
  assert.deepEqual(states(good), ['ok', 'ok', 'ok', 'ok', 'ok'])
  assert.match(
    textOf(good, 'tls'),
    /^TLSv1\.3, CN=bot\.example, issued by CN=Test Authority, valid until \d{4}-\d\d-\d\d /,
  )
  assert.deepEqual(
    [good.tls?.version, good.tls?.subject, good.tls?.issuer],
    ['TLSv1.3', 'CN=bot.example', 'CN=Test Authority'],
  )
  const refused = [
    [{ from: dateIn(-3), until: dateIn(-2) }, 'TLS: certificate has expired', /^Renew/],
    [{ name: 'other.example' }, 'TLS: certificate is for another host name', /names bot\.example/],
  ] as const
  for (const [wishes, text, advice] of refused) {
    const checked = await check(await secureEndpoint(context, wishes))
    assert.deepEqual(states(checked), ['ok', 'ok', 'ok', 'failed', 'skipped'])
    assert.equal(textOf(checked, 'tls'), text)
    assert.match(checked.advice, advice)
    assert.equal(checked.tls?.issuer, 'CN=Test Authority')
  }
  const own = makeCertificate('bot.example')
  const url = await serve(context, own)
  const selfSigned = await check(url)
  assert.equal(textOf(selfSigned, 'tls'), 'TLS: certificate is self-signed')
  assert.match(selfSigned.advice, /upload your own/)
  assert((selfSigned.tls?.validUntilMs ?? 0) > Date.now())
  assert.deepEqual(states(await check(url, { certificate: own.cert })).slice(3), ['ok', 'ok'])
})

test('the names in a certificate are text in one line', async (context) => {
  const name = 'bot.example\u001b[31m'
  const wishes = { name, alternatives: 'DNS:bot.example' }
  const { tls } = await check(await secureEndpoint(context, wishes))
  assert.match(tls?.subject ?? '', /^CN=bot\.example/)
  assert.doesNotMatch(tls?.subject ?? '', /[\p{Cc}]/u)
})

/** Accepts connections and says nothing. */
function silentPort(context: TestContext): Promise<RawServer> {
  return startRawServer(context, (socket) => void socket.resume())
}

function withClock(clock: FakeClock): Partial<EndpointCheckOptions> {
  return { clock, network: { ...network, connect: createConnector(clock) } }
}

test('a handshake that hangs ends as that of a delivery, and leaves nothing open', async (context) => {
  const { port, sockets } = await silentPort(context)
  const clock = new FakeClock()
  const outcome = check(`https://bot.example:${port}/`, withClock(clock))
  while (sockets.size === 0) await settle()
  await clock.advance(webhookConnectTimeoutMs)
  const checked = await outcome
  assert.deepEqual(states(checked), ['ok', 'ok', 'ok', 'failed', 'skipped'])
  assert.equal(textOf(checked, 'tls'), 'TLS: no complete handshake in time')
  await until(() => sockets.size === 0)
  assert.equal(clock.timers, 0)
})

test('a response that does not come ends after the time of a delivery, and a look-up before that', async (context) => {
  const { port, sockets } = await silentPort(context)
  const clock = new FakeClock()
  const outcome = check(`http://bot.example:${port}/`, withClock(clock))
  while (sockets.size === 0) await settle()
  while (clock.timers === 0) await settle()
  await clock.advance(webhookResponseTimeoutMs)
  const checked = await outcome
  assert.deepEqual(states(checked), ['ok', 'ok', 'ok', 'skipped', 'failed'])
  assert.match(textOf(checked, 'post'), /^Read timeout expired/)
  await until(() => sockets.size === 0)
  const silent = check('http://bot.example/', {
    clock,
    network: { ...network, lookup: silentName },
  })
  await settle()
  await clock.advance(webhookConnectTimeoutMs)
  assert.match(textOf(await silent, 'name'), /Temporary failure in name resolution$/)
  assert.equal(clock.timers, 0)
})

test('an abort ends a check at once with its reason, wherever it is', async (context) => {
  const { port, sockets } = await silentPort(context)
  for (const [url, more] of [
    [`https://bot.example:${port}/`, {}],
    [`http://bot.example:${port}/`, {}],
    ['http://bot.example/', { network: { ...network, lookup: silentName } }],
  ] as const) {
    const aborter = new AbortController()
    const outcome = assert.rejects(check(url, { ...more, signal: aborter.signal }), {
      message: 'the worker leaves',
    })
    if (!('network' in more)) await until(() => sockets.size > 0)
    aborter.abort(new Error('the worker leaves'))
    await outcome
    await until(() => sockets.size === 0)
  }
})

test('a redirect is not followed, and only its host is shown', async (context) => {
  const { url, received } = await endpoint(context, (response) => {
    response.writeHead(302, { Location: `http://127.0.0.1/s3cr?t=1` }).end('moved')
  })
  const checked = await check(url)
  assert.deepEqual(states(checked), ['ok', 'ok', 'ok', 'skipped', 'failed'].with(0, 'skipped'))
  assert.equal(textOf(checked, 'post'), 'Wrong response from the webhook: 302 Found')
  assert.match(checked.advice, /do not follow redirects/)
  const headers = checked.responseHeaders?.map(({ name, value }) => `${name}: ${value}`)
  assert(headers?.includes('location: http://127.0.0.1/***'), headers?.join())
  assert.deepEqual([checked.status, checked.responseBody, received.length], [302, 'moved', 1])
})

test('what a failed response says is shown as that of an attempt: not at all if it is not kept, and without secrets', async (context) => {
  const { url } = await endpoint(context, (response, { request }) => {
    response.writeHead(500, { 'X-Echo': request.url, 'Set-Cookie': 'a=b', Server: 'x' })
    response.end(`${request.url} ${String(request.headers['x-secret-token'])}\u0007`)
  })
  const secret = { secretToken: 'the-secret' }
  const shown = await check(url.replace('/hook', '/hook-of-the-bot'), secret)
  assert.equal(shown.responseBody, '*** ***\ufffd')
  const headers = Object.fromEntries(
    (shown.responseHeaders ?? []).map(({ name, value }) => [name, value]),
  )
  assert.deepEqual(
    [headers['x-echo'], headers['server'], headers['set-cookie']],
    ['***', 'x', undefined],
  )
  const hidden = await check(url, { ...secret, responseTextOf: () => undefined })
  assert.deepEqual(
    [hidden.status, hidden.responseBody, hidden.responseHeaders],
    [500, undefined, undefined],
  )
})

test('an answer that ends a check leaves neither a connection nor texts of the endpoint', async (context) => {
  for (const [answer, text] of [
    [endless.headers, /headers are too large$/],
    [endless['interim responses'], /too many interim responses$/],
    [notHttp['a greeting of SSH'], /not HTTP\/1\.1$/],
    [brokenOff['nothing, and the end'], /^Webhook connection closed$/],
  ] as const) {
    const server = await startHostileServer(context, answer)
    const checked = await check(server.origin)
    assert.equal(checked.steps.at(-1)?.state, 'failed')
    assert.match(textOf(checked, 'post'), text)
    assert.deepEqual([checked.responseHeaders, checked.responseBody], [undefined, undefined])
    await until(() => server.open() === 0)
  }
})

test('a check takes a 2xx status line as deliveries do, whatever follows it', async (context) => {
  const headers = 'x-a: b\r\n'.repeat(10_000)
  for (const answer of [`200 OK\r\n${headers}`, '202 Accepted\r\nx : y\r\n\r\n']) {
    const { url, sockets } = await rawEndpoint(
      context,
      (socket) => void socket.write(`HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 ${answer}`),
    )
    const checked = await check(url)
    assert.deepEqual(
      [checked.steps.at(-1)?.state, textOf(checked, 'post')],
      ['ok', answer.split('\r', 1)[0]],
    )
    await until(() => sockets.size === 0)
  }
})

test('of a response with as many headers as fit, few are shown', async (context) => {
  const many = Array.from({ length: 900 }, (_, nth) => `x-${nth}: \u0001\r\n`).join('')
  const { url } = await rawEndpoint(context, (socket) => {
    socket.write(
      `HTTP/1.1 500 No\r\n${many.replaceAll('\u0001', '\u0080')}Content-Length: 0\r\n\r\n`,
    )
  })
  const checked = await check(url)
  assert.equal(checked.status, 500)
  assert.equal(checked.responseHeaders?.length, 16)
  assert.doesNotMatch(JSON.stringify(checked), /[\p{Cc}]/u)
})
