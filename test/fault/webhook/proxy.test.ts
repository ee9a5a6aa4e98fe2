/** Tests verification and deliveries through a real proxy. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { systemClock } from '../../../src/kit/clock.ts'
import { type Connector, createConnector } from '../../../src/delivery/endpoint/connector.ts'
import { parseEndpoint } from '../../../src/delivery/endpoint/endpoint.ts'
import { verifyEndpoint } from '../../../src/delivery/endpoint/verify.ts'
import { makeCertificate } from '../../support/network/certificates.ts'
import {
  proxyObstacle,
  Tinyproxy,
  type TinyproxyOptions,
} from '../../support/programs/tinyproxy.ts'
import { stopAfter } from '../../support/webhook/webhook-endpoints.ts'
import { setUpWebhook } from '../../support/webhook/webhook-setup.ts'
import { startSink } from '../../support/webhook/webhook-sink.ts'
import { freePort } from '../../support/kit/port.ts'

const obstacle = proxyObstacle()
const options = obstacle === undefined ? {} : { skip: obstacle }

/** Only this side looks up names, and only loopback addresses are allowed. */
function networkThrough(connect: Connector) {
  return {
    lookup: async () => ['127.0.0.1'],
    judge: async (addresses: readonly string[]) => addresses.map((one) => one === '127.0.0.1'),
    connect,
  }
}

interface Through {
  readonly proxy: Tinyproxy
  readonly network: ReturnType<typeof networkThrough>
  /** Returns 'accepted', or the reason why setWebhook refuses the url. */
  readonly verify: (url: string, certificate?: string) => Promise<string>
}

async function through(
  t: TestContext,
  wishes: TinyproxyOptions = {},
  credentials?: string,
): Promise<Through> {
  const proxy = await Tinyproxy.start(t, wishes)
  const { host, port } = proxy
  const authorization =
    credentials === undefined ? undefined : `Basic ${Buffer.from(credentials).toString('base64')}`
  const connect = createConnector(systemClock, { host, port, authorization })
  const network = networkThrough(connect)
  return {
    proxy,
    network,
    async verify(url, certificate) {
      const endpoint = parseEndpoint(url, { local: true })
      const verification = { endpoint, certificate, network, clock: systemClock, timeoutMs: 4_500 }
      try {
        await verifyEndpoint(verification)
        return 'accepted'
      } catch (error) {
        return (error as Error).message.replace('Bad Request: bad webhook: ', '')
      }
    },
  }
}

test(
  'verification and deliveries go through the proxy to the checked address and not to its name',
  options,
  async (t) => {
    const { proxy, network, verify } = await through(t)
    const identity = makeCertificate('bot.example')
    const plain = await startSink(t)
    const secure = await startSink(t, undefined, identity)
    for (const { sink, scheme } of [
      { sink: plain, scheme: 'http' },
      { sink: secure, scheme: 'https' },
    ]) {
      const url = `${scheme}://bot.example:${sink.port}/hook`
      assert.equal(await verify(url, identity.cert), 'accepted')
      const setup = stopAfter(
        t,
        setUpWebhook({ url, maxConnections: 1, certificate: identity.cert }, { network }),
      )
      for (let updateId = 1; updateId <= 20; updateId++) setup.source.push({ updateId })
      setup.dispatcher.start(0)
      await setup.source.empty()
      assert.equal(sink.deliveries.length, 20)
      assert.equal(setup.dispatcher.info().ipAddress, '127.0.0.1')
      const asked = proxy.targets.filter((target) => target.endsWith(`:${sink.port}`))
      const target = `127.0.0.1:${sink.port}`
      assert.deepEqual(asked, [target, target], 'once to verify, once for 20 updates')
      assert.equal(sink.connections.total, 2, 'and none besides')
    }
  },
)

test(
  'a proxy that requires a password gets it, and an error says when it is wrong',
  options,
  async (t) => {
    const sink = await startSink(t)
    const url = `http://bot.example:${sink.port}/`
    const wishes = { credentials: 'postbote s3cret' }
    assert.equal(await (await through(t, wishes, 'postbote:s3cret')).verify(url), 'accepted')
    const refused = /^Proxy: wrong response 40[17] /
    assert.match(await (await through(t, wishes, 'postbote:wrong')).verify(url), refused)
    assert.match(await (await through(t, wishes)).verify(url), refused)
    assert.equal(sink.connections.total, 1)
  },
)

test(
  'an error says what the proxy refused or could not do, and which of the two failed',
  options,
  async (t) => {
    const sink = await startSink(t)
    const picky = await through(t, { onlyPort: 1 })
    assert.match(
      await picky.verify(`http://bot.example:${sink.port}/`),
      /^Proxy: wrong response 403 /,
    )
    const { proxy, verify } = await through(t)
    assert.match(
      await verify(`http://bot.example:${await freePort()}/`),
      /^Proxy: wrong response 50\d /,
      'nobody at the other end',
    )
    const untrusted = await startSink(t, undefined, makeCertificate('bot.example'))
    assert.equal(
      await verify(`https://bot.example:${untrusted.port}/`),
      'TLS: certificate is self-signed',
      'TLS is with the endpoint, not with the proxy',
    )
    const asked = proxy.targets.length
    assert.equal(
      await verify(`http://10.0.0.1:${sink.port}/`),
      'IP address 10.0.0.1 is reserved',
      'it is not left to the proxy to refuse',
    )
    assert.equal(proxy.targets.length, asked)
    await proxy.stop()
    assert.equal(await verify(`http://bot.example:${sink.port}/`), 'Proxy: Connection refused')
    assert.equal(sink.connections.total, 0)
  },
)
