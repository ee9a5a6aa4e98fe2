import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import { waitingClock } from '../../../../src/kit/clock.ts'
import { examineNetwork } from '../../../../src/cli/doctor/examine-network.ts'
import { parseConfig } from '../../../../src/config/config.ts'
import type { Finding } from '../../../../src/kit/finding.ts'

function examine(
  webhookUrl: string | undefined,
  ...argv: readonly string[]
): Promise<readonly Finding[]> {
  const config = parseConfig({ argv, env: {}, readFile: () => '{}' })
  return examineNetwork(config, { clock: waitingClock, webhookUrl })
}

/** Returns the port of a server that counts its connections. */
async function listening(t: TestContext, onConnection: () => void): Promise<number> {
  const server = createServer((socket) => {
    onConnection()
    socket.on('error', () => undefined)
    socket.end()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  return (server.address() as AddressInfo).port
}

test('without a proxy and a webhook nothing is examined', async () => {
  assert.deepEqual(await examine(undefined), [])
})

test('a webhook is connected to, and its path is never shown', async (t) => {
  let connections = 0
  const port = await listening(t, () => connections++)
  const url = `http://127.0.0.1:${port}/s3cret`
  const [well] = await examine(url, '--local')
  assert.equal(well?.level, 'good')
  assert.match(
    well?.text ?? '',
    /^127\.0\.0\.1:\d+ accepts connections at 127\.0\.0\.1, after \d+ ms$/,
  )
  assert.equal(connections, 1)
  const [ill] = await examine('http://127.0.0.1:1/s3cret', '--local')
  assert.equal(ill?.level, 'bad')
  assert.match(
    ill?.text ?? '',
    /Connection refused; nobody listens there: start the webhook, or check its port$/,
  )
  assert.doesNotMatch(`${well?.text}${ill?.text}`, /s3cret/)
})

test('what setWebhook would refuse is a fault, with advice, and nothing is connected to', async () => {
  const [reserved] = await examine('https://127.0.0.1/')
  assert.match(reserved?.text ?? '', /127\.0\.0\.1 is reserved; .* --allow-cidr or --local$/)
  const [plain] = await examine('http://example.com/')
  assert.match(plain?.text ?? '', /^--webhook-url: .*HTTPS/)
  assert.deepEqual([reserved?.level, plain?.level], ['bad', 'bad'])
})

test('a proxy is connected to, and its password is never shown', async (t) => {
  const port = await listening(t, () => undefined)
  const [well] = await examine(undefined, `--proxy=http://u:s3cret@127.0.0.1:${port}`)
  assert.deepEqual(well, {
    level: 'good',
    text: `the proxy at 127.0.0.1:${port} accepts connections`,
  })
  const [ill] = await examine(undefined, '--proxy=http://u:s3cret@127.0.0.1:1')
  assert.deepEqual(ill, {
    level: 'bad',
    text: 'Proxy: Connection refused at 127.0.0.1:1: check --proxy and the proxy',
  })
})
