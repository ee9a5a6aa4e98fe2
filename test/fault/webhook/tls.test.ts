/** Tests TLS with real certificates and handshakes: what is accepted, what is refused, and the error messages. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { createServer as createTcpServer, type Server, type Socket } from 'node:net'
import { before, test, type TestContext } from 'node:test'
import { createServer as createTlsServer, type TlsOptions, type TLSSocket } from 'node:tls'
import { systemClock } from '../../../src/kit/clock.ts'
import { readCertificates } from '../../../src/delivery/endpoint/certificate.ts'
import { createConnector } from '../../../src/delivery/endpoint/connector.ts'
import { parseEndpoint } from '../../../src/delivery/endpoint/endpoint.ts'
import type { WebhookFailure } from '../../../src/delivery/attempts/failure.ts'
import { type Verification, verifyEndpoint } from '../../../src/delivery/endpoint/verify.ts'
import {
  type CertificateWishes,
  dateIn,
  issueCertificate,
  type KeyPair,
  makeCertificate,
} from '../../support/network/certificates.ts'
import { stopAfter } from '../../support/webhook/webhook-endpoints.ts'
import { loopbackNetwork, setUpWebhook } from '../../support/webhook/webhook-setup.ts'
import { portOf } from '../../support/kit/port.ts'
import { until } from '../../support/kit/until.ts'

/** Trusted like a public authority. */
let authority: KeyPair
let network: typeof loopbackNetwork

before(() => {
  authority = issueCertificate({ name: 'Test Authority', isAuthority: true })
  const connect = createConnector(systemClock, undefined, () => [authority.cert])
  network = { ...loopbackNetwork, connect }
})

function publicCertificate(wishes: Partial<CertificateWishes> = {}): KeyPair {
  return issueCertificate({ name: 'bot.example', issuer: authority, ...wishes })
}

async function listen(context: TestContext, server: Server): Promise<number> {
  server.on('tlsClientError', () => undefined)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  context.after(() => server.close())
  return portOf(server)
}

/** Starts a silent TLS server and returns its port. */
function tlsPort(context: TestContext, options: TlsOptions): Promise<number> {
  return listen(
    context,
    createTlsServer(options, (socket) => {
      socket.on('error', () => undefined)
      socket.resume()
    }),
  )
}

interface Outcome {
  readonly message: string
  readonly kind?: string
}

/** Returns 'accepted', or the reason for the refusal. */
async function outcomeOf(
  port: number,
  more: Partial<Verification> & { readonly host?: string } = {},
): Promise<Outcome> {
  const { host = 'bot.example', ...rest } = more
  const endpoint = parseEndpoint(`https://${host}:${port}/`, { local: true })
  try {
    await verifyEndpoint({ endpoint, network, clock: systemClock, timeoutMs: 4_500, ...rest })
    return { message: 'accepted' }
  } catch (error) {
    assert.ok(error instanceof Error)
    const message = error.message.replace('Bad Request: bad webhook: ', '')
    return { message, kind: (error.cause as WebhookFailure).kind }
  }
}

const accepted: Outcome = { message: 'accepted' }

function tlsFailure(message: string): Outcome {
  return { message: `TLS: ${message}`, kind: 'tls_failed' }
}

const wrongHost = tlsFailure('certificate is for another host name')
const unknownIssuer = tlsFailure(
  'certificate cannot be verified: unknown issuer, or an intermediate certificate is missing',
)

function joined(leaf: KeyPair, ...more: readonly KeyPair[]): KeyPair {
  return { key: leaf.key, cert: [leaf, ...more].map(({ cert }) => cert).join('\n') }
}

test('an error says what is wrong with a certificate', async (context) => {
  const selfSigned = makeCertificate('bot.example')
  const foreign = issueCertificate({ name: 'Foreign', isAuthority: true })
  const between = issueCertificate({ name: 'Between', isAuthority: true, issuer: authority })
  const foreignLeaf = publicCertificate({ issuer: foreign })
  const leafBetween = publicCertificate({ issuer: between })
  const wildcard = publicCertificate({ alternatives: 'DNS:*.bot.example' })
  const cases: readonly (readonly [string, KeyPair, Outcome, string?])[] = [
    ['good', publicCertificate(), accepted],
    ['good with its intermediate', joined(leafBetween, between), accepted],
    ['without its intermediate', leafBetween, unknownIssuer],
    [
      'expired',
      publicCertificate({ from: dateIn(-3), until: dateIn(-2) }),
      tlsFailure('certificate has expired'),
    ],
    [
      'not yet valid',
      publicCertificate({ from: dateIn(2), until: dateIn(3) }),
      tlsFailure('certificate is not yet valid'),
    ],
    ['self-signed', selfSigned, tlsFailure('certificate is self-signed')],
    [
      'self-signed in its chain',
      joined(foreignLeaf, foreign),
      tlsFailure('certificate chain ends in a self-signed certificate'),
    ],
    ['of an unknown authority', foreignLeaf, unknownIssuer],
    ['for another host', publicCertificate({ name: 'other.example' }), wrongHost],
    ['with a wildcard', wildcard, accepted, 'my.bot.example'],
    ['whose wildcard stands for one label', wildcard, wrongHost, 'a.b.bot.example'],
  ]
  for (const [name, identity, expected, host = 'bot.example'] of cases) {
    const port = await tlsPort(context, identity)
    assert.deepEqual(await outcomeOf(port, { host }), expected, name)
  }
})

test('an error says what failed in a handshake', async (context) => {
  const identity = publicCertificate()
  const plain = await listen(
    context,
    createHttpServer((_request, response) => void response.end()),
  )
  assert.deepEqual(
    await outcomeOf(plain),
    tlsFailure('handshake failed: this port does not speak TLS'),
    'plain HTTP',
  )
  const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'ALL:@SECLEVEL=0' } as const
  assert.deepEqual(
    await outcomeOf(await tlsPort(context, { ...identity, ...old })),
    tlsFailure('handshake failed: no common protocol version'),
    'an old protocol',
  )
  const ciphers = { maxVersion: 'TLSv1.2', ciphers: 'PSK' } as const
  assert.deepEqual(
    await outcomeOf(await tlsPort(context, { ...identity, ...ciphers })),
    tlsFailure('handshake failed: no common cipher, or a client certificate is required'),
    'no common cipher',
  )
  const slamming = createTcpServer((socket) => void socket.once('data', () => socket.destroy()))
  assert.deepEqual(
    await outcomeOf(await listen(context, slamming)),
    tlsFailure('handshake failed: Connection reset by peer'),
    'closed in the middle',
  )
})

for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
  test(`an endpoint that requests a client certificate is distinguished from one that disconnects: ${maxVersion}`, async (context) => {
    const port = await tlsPort(context, {
      ...publicCertificate(),
      maxVersion,
      requestCert: true,
      rejectUnauthorized: true,
    })
    const url = `https://bot.example:${port}/`
    const setup = stopAfter(context, setUpWebhook({ url }, { network }))
    setup.source.push({ updateId: 1 })
    setup.dispatcher.start(0)
    await until(() => setup.attempts.counts().tls_failed > 0)
    assert.match(
      setup.attempts.lastError ?? '',
      /^TLS: handshake failed: .*a client certificate is required$/,
    )
  })
}

test("an uploaded certificate is the only trust root, and the system's roots no longer count", async (context) => {
  const selfSigned = makeCertificate('bot.example')
  const publicPort = await tlsPort(context, publicCertificate())
  const ownPort = await tlsPort(context, selfSigned)
  const certificate = readCertificates(Buffer.from(selfSigned.cert))
  assert.deepEqual(await outcomeOf(publicPort), accepted)
  assert.deepEqual(await outcomeOf(publicPort, { certificate }), unknownIssuer)
  assert.deepEqual(await outcomeOf(ownPort, { certificate }), accepted)
  const renewed = makeCertificate('bot.example')
  assert.deepEqual(
    await outcomeOf(ownPort, { certificate: renewed.cert }),
    tlsFailure('certificate is self-signed'),
    'another certificate of the same name',
  )
})

test('an uploaded leaf or intermediate certificate is a trust root like that of an authority', async (context) => {
  const between = issueCertificate({ name: 'Between', isAuthority: true, issuer: authority })
  const leaf = publicCertificate({ issuer: between })
  const port = await tlsPort(context, leaf)
  for (const { cert } of [leaf, between]) {
    assert.deepEqual(
      await outcomeOf(port, { certificate: readCertificates(Buffer.from(cert)) }),
      accepted,
    )
  }
  const expired = issueCertificate({ name: 'bot.example', from: dateIn(-3), until: dateIn(-2) })
  assert.deepEqual(
    await outcomeOf(await tlsPort(context, expired), { certificate: expired.cert }),
    tlsFailure('certificate has expired'),
  )
})

test('a certificate may name an address, but as its common name only if it was uploaded', async (context) => {
  const host = '127.0.0.1'
  const guided = issueCertificate({ name: host, alternatives: false })
  assert.deepEqual(
    await outcomeOf(await tlsPort(context, guided), { host, certificate: guided.cert }),
    accepted,
  )
  const named = publicCertificate({ name: host, alternatives: false })
  assert.deepEqual(await outcomeOf(await tlsPort(context, named), { host }), wrongHost)
  const listed = publicCertificate({ alternatives: `IP:${host}` })
  assert.deepEqual(await outcomeOf(await tlsPort(context, listed), { host }), accepted)
  const other = issueCertificate({ name: '127.0.0.2', alternatives: false })
  assert.deepEqual(
    await outcomeOf(await tlsPort(context, other), { host, certificate: other.cert }),
    wrongHost,
  )
  const dotted = publicCertificate()
  assert.deepEqual(
    await outcomeOf(await tlsPort(context, dotted), { host: 'bot.example.' }),
    accepted,
  )
})

test('the name in SNI, which is also checked, is that of the URL, whatever ip_address is', async (context) => {
  const names: (string | false | null)[] = []
  const server = createTlsServer(publicCertificate(), (socket) => {
    names.push(socket.servername)
    socket.on('error', () => undefined)
    socket.resume()
  })
  const port = await listen(context, server)
  const pinned = { ipAddress: '127.0.0.1', network: { ...network, lookup: noLookup } }
  assert.deepEqual(await outcomeOf(port, pinned), accepted)
  assert.deepEqual(await outcomeOf(port, { host: 'bot.example.' }), accepted)
  assert.equal(
    (await outcomeOf(port, { ...pinned, host: 'other.example' })).message.slice(0, 4),
    'TLS:',
  )
  await until(() => names.length >= 2)
  assert.deepEqual(names.slice(0, 2), ['bot.example', 'bot.example'])
})

async function noLookup(): Promise<never> {
  throw new Error('nothing may be looked up')
}

interface TlsEndpoint {
  readonly server: Server
  readonly url: string
  readonly handshakes: boolean[]
  /** Number of responses after which each connection is closed. */
  answersMax: number
}

/** Records for each connection whether its session was resumed. */
async function tlsEndpoint(context: TestContext, options: TlsOptions): Promise<TlsEndpoint> {
  const handshakes: boolean[] = []
  const answers = new WeakMap<object, number>()
  const server = createHttpsServer(options, (request, response) => {
    request.resume()
    const count = (answers.get(request.socket) ?? 0) + 1
    answers.set(request.socket, count)
    if (count >= endpoint.answersMax) response.setHeader('Connection', 'close')
    response.end()
  })
  server.on(
    'secureConnection',
    (socket: TLSSocket) => void handshakes.push(socket.isSessionReused()),
  )
  const port = await listen(context, server)
  context.after(() => server.closeAllConnections())
  const endpoint = {
    server,
    url: `https://bot.example:${port}/`,
    handshakes,
    answersMax: Number.POSITIVE_INFINITY,
  }
  return endpoint
}

for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
  test(`a connection is kept for many updates, and the next one resumes its ${maxVersion} session`, async (context) => {
    const endpoint = await tlsEndpoint(context, { ...publicCertificate(), maxVersion })
    const setup = stopAfter(
      context,
      setUpWebhook({ url: endpoint.url, maxConnections: 1 }, { network }),
    )
    for (let id = 1; id <= 100; id++) setup.source.push({ updateId: id })
    setup.dispatcher.start(0)
    await setup.source.empty()
    assert.deepEqual(endpoint.handshakes, [false], '100 updates, one handshake')
    endpoint.answersMax = 1
    for (let id = 101; id <= 106; id++) setup.source.push({ updateId: id })
    setup.dispatcher.wake()
    await setup.source.empty()
    assert.deepEqual(endpoint.handshakes, [false, true, true, true, true, true])
  })
}

test('each webhook has separate sessions, and one whose handshake failed is not tried again', async (context) => {
  const endpoint = await tlsEndpoint(context, publicCertificate())
  const deliver = async (...ids: readonly number[]): Promise<void> => {
    const setup = stopAfter(context, setUpWebhook({ url: endpoint.url }, { network }))
    for (const updateId of ids) {
      setup.source.push({ updateId })
      setup.dispatcher.start(0)
      setup.dispatcher.wake()
      await setup.source.empty()
    }
  }
  endpoint.answersMax = 1
  await deliver(1, 2)
  assert.deepEqual(endpoint.handshakes, [false, true])
  await deliver(1)
  assert.deepEqual(endpoint.handshakes, [false, true, false], 'another webhook with this address')
  let connections = 0
  endpoint.server.prependListener('connection', (socket: Socket) => {
    if (++connections === 2) socket.destroy()
  })
  await deliver(1, 2)
  assert.deepEqual(endpoint.handshakes, [false, true, false, false, false])
})
