/**
 * To which addresses a real server without --local delivers: names from a real DNS server, addresses that look public,
 * and endpoints on port 443 with certificates of an authority that the system trusts. Everything runs in a network
 * namespace, so that no packet can leave the machine.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import type { TLSSocket } from 'node:tls'
import { fileURLToPath } from 'node:url'
import { issueCertificate } from '../support/network/certificates.ts'
import { type DnsServer, startDns } from '../support/network/dns-server.ts'
import { longBlocklist } from '../support/webhook/long-blocklist.ts'
import {
  isInNamespace,
  namespaceObstacle,
  runInNamespace,
  setUpNamespace,
} from '../support/kit/network-namespace.ts'
import { type RegisteredBot, type Server, startServer } from '../support/server/server.ts'
import { temporaryDirectory } from '../support/kit/temporary-directory.ts'
import { until } from '../support/kit/until.ts'

const publicAddress = '93.184.216.34'
const publicAddress6 = '2606:2800:220:1::34'
/** Nothing listens there. */
const deadAddress = '93.184.216.35'
const blockedAddress = '93.184.216.99'
const allowedAddress = '10.20.30.40'
/** Addresses with a listener to which the server must never connect. */
const traps = ['127.0.0.1', '10.9.8.7', blockedAddress, '::1']

if (!isInNamespace) {
  const obstacle = namespaceObstacle()
  const options = obstacle === undefined ? {} : { skip: obstacle }
  test('addresses of webhooks in a separate network', options, async (t) => {
    await runInNamespace(t, fileURLToPath(import.meta.url))
  })
} else {
  defineTests()
}

interface Endpoint {
  /** One entry for each request: `<SNI> <Host><path>`. */
  readonly requests: string[]
  /** By path; all others get 200. */
  readonly answers: Map<string, (response: ServerResponse) => void>
  /** The number of connections to the traps. */
  trapped: number
}

interface Life {
  readonly dns: DnsServer
  readonly endpoint: Endpoint
  readonly server: Server
  /** Called at each query for IPv4 addresses. */
  onQuestion: (name: string) => void
}

async function startLife(t: TestContext): Promise<Life> {
  setUpNamespace(t, [
    publicAddress,
    publicAddress6,
    deadAddress,
    blockedAddress,
    allowedAddress,
    '10.9.8.7',
  ])
  const life = { onQuestion: (_name: string): void => undefined }
  const dns = await startDns(t, { port: 53, onQuestion: (name) => life.onQuestion(name) })
  const authority = issueCertificate({ name: 'Test Authority', isAuthority: true })
  const names = [
    'DNS:bot.example',
    'DNS:*.bot.example',
    'DNS:xn--bcher-kva.example',
    `IP:${publicAddress}`,
  ]
  const identity = issueCertificate({
    name: 'bot.example',
    alternatives: names.join(','),
    issuer: authority,
  })
  const endpoint = await startEndpoint(t, identity)
  const directory = temporaryDirectory(t)
  const files = { authority: join(directory, 'ca.pem'), config: join(directory, 'config.json') }
  writeFileSync(files.authority, authority.cert)
  const block = [...longBlocklist(), `${blockedAddress}/32`]
  const options = { 'block-cidr': block, 'allow-cidr': [`${allowedAddress}/32`] }
  writeFileSync(files.config, JSON.stringify(options))
  const startMs = Date.now()
  const server = await startServer(t, {
    flags: [`--config=${files.config}`],
    env: { NODE_EXTRA_CA_CERTS: files.authority },
  })
  // Reported, and not asserted.
  t.diagnostic(`said: started with ${block.length} blocked ranges in ${Date.now() - startMs} ms`)
  return Object.assign(life, { dns, endpoint, server })
}

async function startEndpoint(
  t: TestContext,
  identity: { readonly key: string; readonly cert: string },
): Promise<Endpoint> {
  const endpoint: Endpoint = {
    requests: [],
    answers: new Map(),
    trapped: 0,
  }
  const sockets = new Set<Socket>()
  const secure = [publicAddress, publicAddress6, allowedAddress].map((address) => {
    const server = createHttpsServer(identity, (request, response) => {
      request.resume()
      const { url = '' } = request
      const { servername } = request.socket as TLSSocket
      endpoint.requests.push(`${servername} ${request.headers.host}${url}`)
      const answer = endpoint.answers.get(url)
      if (answer === undefined) response.end()
      else answer(response)
    })
    return { server, address }
  })
  const trapServers = traps.map((address) => {
    const server = createServer((socket) => {
      endpoint.trapped++
      socket.destroy()
    })
    return { server, address }
  })
  for (const { server, address } of [...secure, ...trapServers]) {
    server.on('connection', (socket: Socket) => void sockets.add(socket))
    server.listen(443, address)
    await once(server, 'listening')
    t.after(() => server.close())
  }
  t.after(() => {
    for (const socket of sockets) socket.destroy()
  })
  return endpoint
}

/** Registers a bot with the webhook `url`; returns the description of setWebhook. */
async function hook(
  { server }: Life,
  url: string,
  more: object = {},
): Promise<{ readonly bot: RegisteredBot; readonly said: string }> {
  const bot = await server.register()
  const { body } = await server.call(bot.token, 'setWebhook', { url, ...more })
  return { bot, said: body.description }
}

function reserved(address: string): string {
  return `Bad Request: bad webhook: IP address ${address} is reserved`
}

async function infoOf({ server }: Life, bot: RegisteredBot): Promise<Record<string, unknown>> {
  return (await server.call(bot.token, 'getWebhookInfo')).body.result
}

/** Pushes an update and waits until it was delivered to `path`. */
async function deliver(
  { server, endpoint }: Life,
  bot: RegisteredBot,
  path: string,
): Promise<void> {
  const arrived = (): number => endpoint.requests.filter((one) => one.endsWith(path)).length
  const before = arrived()
  await server.push(bot.botId, { message: {} })
  await until(() => arrived() > before)
}

function defineTests(): void {
  test('a server without --local', async (t) => {
    const life = await startLife(t)
    const cases: Readonly<Record<string, (life: Life) => Promise<void>>> = {
      'delivers to a public address by name, and looks the name up at most once': onceAsked,
      'delivers to addresses of both families, to one in the URL, and to one that is pinned':
        families,
      'converts a name that is not ASCII, and leaves the dot at the end of a name out of SNI':
        spellings,
      'refuses a name with any reserved or blocked address, whatever its other addresses are':
        mixed,
      'accepts an address that --allow-cidr allows, and refuses one of a long --block-cidr': listed,
      'refuses a name that changes its address between check and connection': rebinding,
      'follows no redirect': redirects,
      'delivers to the address that worked, not to the dead one before it': deadFirst,
    }
    const runs = Object.entries(cases).map(([name, run]) => t.test(name, () => run(life)))
    await Promise.all(runs)
    await t.test(
      'reserved addresses are skipped when a name is looked up again after a restart',
      () => afterRestart(life),
    )
    assert.equal(life.endpoint.trapped, 0, 'nothing was connected to that must not be')
  })
}

async function onceAsked(life: Life): Promise<void> {
  const { dns, endpoint } = life
  dns.names.set('once.bot.example', [publicAddress])
  const { bot, said } = await hook(life, 'https://once.bot.example/once')
  assert.equal(said, 'Webhook was set')
  assert.equal(dns.questions('once.bot.example'), 1)
  await deliver(life, bot, '/once')
  assert.equal(dns.questions('once.bot.example'), 1, 'deliveries use what was verified')
  // A new connection for every update.
  endpoint.answers.set('/once', (response) => void response.setHeader('Connection', 'close').end())
  for (let count = 0; count < 5; count++) await deliver(life, bot, '/once')
  assert.equal(dns.questions('once.bot.example'), 1)
  assert.equal((await infoOf(life, bot))['ip_address'], publicAddress)
  assert.ok(endpoint.requests.includes('once.bot.example once.bot.example/once'))
}

async function families(life: Life): Promise<void> {
  life.dns.names.set('six.bot.example', [publicAddress6])
  const six = await hook(life, 'https://six.bot.example/six')
  assert.equal(six.said, 'Webhook was set')
  await deliver(life, six.bot, '/six')
  assert.equal((await infoOf(life, six.bot))['ip_address'], publicAddress6)
  const plain = await hook(life, `https://${publicAddress}/plain`)
  assert.equal(plain.said, 'Webhook was set')
  await deliver(life, plain.bot, '/plain')
  // No name server knows this name, and none needs to.
  const pinned = await hook(life, 'https://pinned.bot.example/pinned', {
    ip_address: publicAddress,
  })
  assert.equal(pinned.said, 'Webhook was set')
  await deliver(life, pinned.bot, '/pinned')
  assert.ok(life.endpoint.requests.includes('pinned.bot.example pinned.bot.example/pinned'))
  assert.equal(life.dns.questions('pinned.bot.example'), 0)
  const unknown = await hook(life, 'https://unknown.bot.example/')
  assert.match(unknown.said, /bad webhook: Failed to resolve host: Name or service not known$/)
}

async function spellings(life: Life): Promise<void> {
  life.dns.names.set('xn--bcher-kva.example', [publicAddress])
  const { bot, said } = await hook(life, 'https://Bücher.example./idn')
  assert.equal(said, 'Webhook was set')
  await deliver(life, bot, '/idn')
  assert.ok(life.endpoint.requests.includes('xn--bcher-kva.example xn--bcher-kva.example./idn'))
}

async function mixed(life: Life): Promise<void> {
  const bad = [
    '127.0.0.1',
    '10.9.8.7',
    '::1',
    '::ffff:10.9.8.7',
    '64:ff9b::a09:807',
    '2002:a09:807::1',
    blockedAddress,
  ]
  for (const [index, address] of bad.entries()) {
    const name = `mixed${index}.bot.example`
    life.dns.names.set(name, [publicAddress, address])
    const { said } = await hook(life, `https://${name}/`)
    assert.ok(said.startsWith('Bad Request: bad webhook: IP address '), said)
    assert.ok(said.endsWith(' is reserved'), said)
  }
  for (const url of [
    'https://2130706433/',
    'https://[::ffff:10.9.8.7]/',
    'https://bot.example@10.9.8.7/',
  ]) {
    assert.match((await hook(life, url)).said, /IP address .* is reserved$/)
  }
  life.dns.names.set('fine.bot.example', [publicAddress])
  const pinned = await hook(life, 'https://fine.bot.example/', { ip_address: '10.9.8.7' })
  assert.equal(pinned.said, reserved('10.9.8.7'))
}

async function listed(life: Life): Promise<void> {
  life.dns.names.set('inside.bot.example', [allowedAddress])
  const inside = await hook(life, 'https://inside.bot.example/inside')
  assert.equal(inside.said, 'Webhook was set')
  await deliver(life, inside.bot, '/inside')
  for (const address of [blockedAddress, '20.0.1.65', '2606:0:7::1']) {
    life.dns.names.set('listed.bot.example', [address])
    assert.equal((await hook(life, 'https://listed.bot.example/')).said, reserved(address))
  }
}

async function rebinding(life: Life): Promise<void> {
  const name = 'rebound.bot.example'
  let asked = 0
  life.onQuestion = (question) => {
    if (question === name && ++asked === 2)
      life.dns.names.set(name, ['127.0.0.1', '10.9.8.7', '::1'])
  }
  life.dns.names.set(name, [publicAddress])
  const { bot, said } = await hook(life, `https://${name}/rebound`)
  assert.equal(said, 'Webhook was set', 'what was checked is what was connected to')
  assert.equal(asked, 1)
  await deliver(life, bot, '/rebound')
  assert.equal(asked, 1, 'what was verified is what is delivered to')
}

async function deadFirst(life: Life): Promise<void> {
  const name = 'dead.bot.example'
  life.dns.names.set(name, [deadAddress, publicAddress])
  const { bot, said } = await hook(life, `https://${name}/dead`)
  assert.equal(said, 'Webhook was set')
  await deliver(life, bot, '/dead')
  const { body } = await life.server.admin('GET', `/v1/bots/${bot.botId}/attempts`)
  assert.deepEqual(
    body.attempts.map((attempt: { address: string }) => attempt.address),
    [publicAddress],
  )
  assert.equal(life.dns.questions(name), 1)
}

async function afterRestart(life: Life): Promise<void> {
  const name = 'restart.bot.example'
  life.dns.names.set(name, [publicAddress])
  const { bot, said } = await hook(life, `https://${name}/restart`)
  assert.equal(said, 'Webhook was set')
  await deliver(life, bot, '/restart')
  await life.server.kill()
  life.dns.names.set(name, ['10.9.8.7', '127.0.0.1', publicAddress])
  Object.assign(life, { server: await life.server.restart() })
  await deliver(life, bot, '/restart')
  assert.equal((await infoOf(life, bot))['ip_address'], publicAddress)
  assert.equal((await infoOf(life, bot))['last_error_message'], undefined)
  await life.server.kill()
  life.dns.names.set(name, ['127.0.0.1', '::1'])
  Object.assign(life, { server: await life.server.restart() })
  const delivered = deliver(life, bot, '/restart')
  await until(async () => (await infoOf(life, bot))['last_error_message'] !== undefined)
  assert.match(
    String((await infoOf(life, bot))['last_error_message']),
    /^IP address (127.0.0.1|::1) is reserved$/,
  )
  life.dns.names.set(name, ['127.0.0.1', blockedAddress])
  const check = `/v1/bots/${bot.botId}/webhook/check`
  const refused = (await life.server.admin('POST', check)).body
  assert.deepEqual(
    [refused.ok, refused.addresses],
    [
      false,
      [
        { address: '127.0.0.1', refusal: 'it is reserved, and no --allow-cidr permits it' },
        { address: blockedAddress, refusal: 'it is in a range of --block-cidr' },
      ],
    ],
  )
  life.dns.names.set(name, [publicAddress])
  assert.equal((await life.server.admin('POST', check)).body.ok, true)
  await delivered
}

async function redirects(life: Life): Promise<void> {
  const { dns, endpoint } = life
  dns.names.set('moved.bot.example', [publicAddress])
  const { bot } = await hook(life, 'https://moved.bot.example/moved')
  const targets = ['https://127.0.0.1/moved', 'https://moved.bot.example/elsewhere']
  let answered = 0
  endpoint.answers.set('/moved', (response) => {
    const location = targets[answered++]
    if (location !== undefined) response.writeHead(301 + answered, { location })
    response.end()
  })
  const lost = deliver(life, bot, '/moved')
  await until(() => answered > targets.length)
  await lost
  const requests = new Set(endpoint.requests.filter((one) => one.startsWith('moved.')))
  assert.deepEqual([...requests], ['moved.bot.example moved.bot.example/moved'])
  const { last_error_message: message } = await infoOf(life, bot)
  assert.match(String(message), /^Wrong response from the webhook: 30\d /)
}
