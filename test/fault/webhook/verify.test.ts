import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer as createHttpsServer } from 'node:https'
import { createServer, type Socket } from 'node:net'
import { after, before, test, type TestContext } from 'node:test'
import { systemClock } from '../../../src/kit/clock.ts'
import { compileBlocklist } from '../../../src/http/blocklist.ts'
import { readCertificates } from '../../../src/delivery/endpoint/certificate.ts'
import { createConnector } from '../../../src/delivery/endpoint/connector.ts'
import { parseEndpoint } from '../../../src/delivery/endpoint/endpoint.ts'
import { verifyEndpoint, type Verification } from '../../../src/delivery/endpoint/verify.ts'
import checkAddresses from '../../../workers/check-address.ts'
import { type KeyPair, makeCertificate } from '../../support/network/certificates.ts'
import { FakeClock, settle } from '../../support/kit/fake-clock.ts'
import { loopbackNetwork, setUpWebhook } from '../../support/webhook/webhook-setup.ts'
import { freePort, portOf } from '../../support/kit/port.ts'
import { endpoint, ok } from '../../support/webhook/webhook-endpoints.ts'
import { until } from '../../support/kit/until.ts'

let pair: KeyPair
let httpsPort = 0
const seenNames: (string | false | null)[] = []
const httpsServer = createHttpsServer((_request, response) => void response.end())

before(async () => {
  pair = makeCertificate('bot.example')
  httpsServer.setSecureContext(pair)
  httpsServer.on('secureConnection', (socket) => void seenNames.push(socket.servername))
  httpsServer.on('tlsClientError', () => undefined)
  httpsServer.listen(0, '127.0.0.1')
  await once(httpsServer, 'listening')
  httpsPort = portOf(httpsServer)
})

after(() => {
  httpsServer.closeAllConnections()
  httpsServer.close()
})

async function verify(
  url: string,
  more: Partial<Verification> = {},
): Promise<{ readonly address: string }> {
  const { address, addresses } = await verifyEndpoint({
    endpoint: parseEndpoint(url, { local: true }),
    network: loopbackNetwork,
    clock: systemClock,
    timeoutMs: 4_500,
    ...more,
  })
  assert.equal(addresses[0], address)
  return { address }
}

async function unknownName(): Promise<never> {
  throw Object.assign(new Error('x'), { code: 'ENOTFOUND' })
}

function refused(reason: string): { readonly code: string; readonly message: string } {
  return { code: 'BAD_WEBHOOK', message: `Bad Request: bad webhook: ${reason}` }
}

test('a TLS endpoint is accepted with its own certificate as the trust root, and gets its name', async () => {
  const certificate = readCertificates(Buffer.from(`junk\n${pair.cert}`))
  seenNames.length = 0
  const result = await verify(`https://bot.example:${httpsPort}/`, { certificate })
  assert.deepEqual(result, { address: '127.0.0.1' })
  await until(() => seenNames.length > 0)
  assert.deepEqual(seenNames, ['bot.example'])
})

test("without the uploaded certificate a self-signed one is refused with Postbote's text", async () => {
  await assert.rejects(
    verify(`https://bot.example:${httpsPort}/`),
    refused('TLS: certificate is self-signed'),
  )
})

test('a certificate for another name is refused', async () => {
  await assert.rejects(
    verify(`https://other.example:${httpsPort}/`, { certificate: pair.cert }),
    refused('TLS: certificate is for another host name'),
  )
  await assert.rejects(
    verify(`https://127.0.0.1:${httpsPort}/`, { certificate: pair.cert }),
    refused('TLS: certificate is for another host name'),
  )
})

test('updates are delivered over TLS', async (context) => {
  const setup = setUpWebhook({
    url: `https://bot.example:${httpsPort}/`,
    certificate: pair.cert,
  })
  context.after(() => setup.dispatcher.close())
  setup.source.push({ updateId: 1 }, { updateId: 2 })
  setup.dispatcher.start(0)
  await setup.source.empty()
  assert.equal(setup.dispatcher.info().activeConnections, 1)
})

test('a refused connection, a name that does not resolve and a bad ip_address get different errors', async () => {
  const url = `http://bot.example:${await freePort()}/`
  await assert.rejects(verify(url), refused('Connection refused'))
  await assert.rejects(
    verify(url, { network: { ...loopbackNetwork, lookup: unknownName } }),
    refused('Failed to resolve host: Name or service not known'),
  )
  await assert.rejects(verify(url, { ipAddress: '1.2.3' }), refused('Invalid IP address specified'))
})

test('a verification returns the address that worked first, and then the others in their order', async (context) => {
  const { url } = await endpoint(context, ok)
  const verified = await verifyEndpoint({
    endpoint: parseEndpoint(url.replace('127.0.0.1', 'bot.example'), { local: true }),
    network: { ...loopbackNetwork, lookup: async () => ['127.0.0.9', '127.0.0.1', '127.0.0.8'] },
    clock: systemClock,
    timeoutMs: 4_500,
  })
  assert.deepEqual(verified.addresses, ['127.0.0.1', '127.0.0.9', '127.0.0.8'])
})

test('a name with any blocked address is refused before a connection is opened', async () => {
  const ranges = compileBlocklist({ local: false, block: [], allow: [] })
  let connects = 0
  let found = ['8.8.8.8', '::ffff:10.0.0.1']
  const network = {
    lookup: async () => found,
    judge: async (addresses: readonly string[]) => checkAddresses({ ranges, addresses }),
    connect: async (): Promise<never> => {
      connects++
      throw new Error('no')
    },
  }
  await assert.rejects(
    verify('https://bot.example/', { network }),
    refused('IP address ::ffff:10.0.0.1 is reserved'),
  )
  // The reserved address follows more addresses than are ever tried.
  found = [
    ...Array.from({ length: 1_000 }, (_, index) => `8.8.${index >> 8}.${index & 255}`),
    '10.0.0.1',
  ]
  await assert.rejects(
    verify('https://bot.example/', { network }),
    refused('IP address 10.0.0.1 is reserved'),
  )
  await assert.rejects(
    verify('https://127.0.0.1/', { network }),
    refused('IP address 127.0.0.1 is reserved'),
  )
  await assert.rejects(
    verify('https://bot.example/', { network, ipAddress: '10.0.0.1' }),
    refused('IP address 10.0.0.1 is reserved'),
  )
  assert.equal(connects, 0)
})

async function silentServer(
  context: TestContext,
  onData: (socket: Socket, data: Buffer) => void = () => undefined,
): Promise<{ readonly port: number; readonly sockets: Set<Socket> }> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.on('data', (data) => onData(socket, data))
    socket.on('close', () => sockets.delete(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  context.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { port: portOf(server), sockets }
}

test('one deadline covers all steps, and nothing stays open after it', async (context) => {
  const { port, sockets } = await silentServer(context)
  const clock = new FakeClock()
  const network = { ...loopbackNetwork, connect: createConnector(clock) }
  const verification = verify(`https://bot.example:${port}/`, { clock, network })
  const outcome = assert.rejects(verification, refused('Connection timed out'))
  while (sockets.size === 0) await settle()
  const [socket] = sockets
  await clock.advance(4_500)
  await outcome
  if (socket?.destroyed === false) await once(socket, 'close')
  assert.equal(clock.timers, 0)
})

test('a look-up without a response ends at the deadline and is named', async () => {
  const clock = new FakeClock()
  const network = { ...loopbackNetwork, lookup: () => new Promise<never>(() => undefined) }
  const outcome = assert.rejects(
    verify('https://bot.example/', { clock, network }),
    refused('Failed to resolve host: Temporary failure in name resolution'),
  )
  await clock.advance(4_500)
  await outcome
  assert.equal(clock.timers, 0)
})

test('an abort ends a verification immediately with its reason', async (context) => {
  const { port, sockets } = await silentServer(context)
  const aborter = new AbortController()
  const verification = verify(`https://bot.example:${port}/`, { signal: aborter.signal })
  const outcome = assert.rejects(verification, { message: 'another setWebhook' })
  while (sockets.size === 0) await settle()
  const [socket] = sockets
  aborter.abort(new Error('another setWebhook'))
  await outcome
  if (socket?.destroyed === false) await once(socket, 'close')
})

test('a proxy is asked for a tunnel to the checked address, with its credentials', async (context) => {
  const heads: string[] = []
  const { port } = await silentServer(context, (socket, data) => {
    heads.push(data.toString())
    socket.write('HTTP/1.1 200 Connection established\r\n\r\n')
  })
  const authorization = `Basic ${Buffer.from('me:s@fe').toString('base64')}`
  const proxy = { host: '127.0.0.1', port, authorization }
  const network = {
    lookup: async () => ['192.0.2.7'],
    judge: async () => [true],
    connect: createConnector(systemClock, proxy),
  }
  assert.deepEqual(await verify('http://bot.example:8443/', { network }), { address: '192.0.2.7' })
  assert.deepEqual(heads, [
    `CONNECT 192.0.2.7:8443 HTTP/1.1\r\nHost: 192.0.2.7:8443\r\nProxy-Authorization: ${authorization}\r\n\r\n`,
  ])
})

function throughProxy(port: number): Partial<Verification> {
  const proxy = { host: '127.0.0.1', port, authorization: undefined }
  const connect = createConnector(systemClock, proxy)
  return { certificate: pair.cert, network: { ...loopbackNetwork, connect } }
}

test('TLS goes through the tunnel, and an error names a proxy that refuses', async (context) => {
  const tunnel = await silentServer(context, (socket) => {
    socket.removeAllListeners('data')
    socket.pause()
    socket.write('HTTP/1.1 200 OK\r\n\r\n')
    httpsServer.emit('connection', socket)
  })
  assert.deepEqual(await verify('https://bot.example/', throughProxy(tunnel.port)), {
    address: '127.0.0.1',
  })
  const refusing = await silentServer(context, (socket) => {
    socket.write('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n')
  })
  await assert.rejects(
    verify('https://bot.example/', throughProxy(refusing.port)),
    refused('Proxy: wrong response 407 Proxy Authentication Required'),
  )
  const closing = await silentServer(context, (socket) => void socket.end())
  await assert.rejects(
    verify('https://bot.example/', throughProxy(closing.port)),
    refused('Proxy: Connection closed'),
  )
})
