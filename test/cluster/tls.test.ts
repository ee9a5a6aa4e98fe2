import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { Agent, request } from 'node:https'
import { connect } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { X509Certificate } from 'node:crypto'
import { PostboteClient } from '../../clients/typescript/postbote-client.ts'
import { temporaryDirectory } from '../support/kit/temporary-directory.ts'
import { until } from '../support/kit/until.ts'
import { dateIn, issueCertificate, type KeyPair } from '../support/network/certificates.ts'
import { type Answer, type Server, send, startServer } from '../support/server/server.ts'
import { outputOf, postbote, postboteProcess } from '../support/programs/postbote.ts'

/** Far longer than an event takes: a stream of events has no end, so a test that waits for one that is missing would not either. */
const eventMsMax = 60_000

const authority = issueCertificate({ name: 'authority', isAuthority: true })

function renewed(): KeyPair {
  return issueCertificate({
    name: 'bots.example',
    alternatives: 'DNS:bots.example,IP:127.0.0.1',
    issuer: authority,
  })
}

/** A server with TLS on both listeners, and clients that know its authority. */
class TlsServer {
  readonly server: Server
  readonly flags: readonly string[]
  readonly #write: (pair: KeyPair) => void

  constructor(server: Server, flags: readonly string[], write: (pair: KeyPair) => void) {
    this.server = server
    this.flags = flags
    this.#write = write
  }

  static async start(t: TestContext): Promise<TlsServer> {
    const directory = temporaryDirectory(t)
    const [cert, key] = [join(directory, 'cert.pem'), join(directory, 'key.pem')]
    const write = (pair: KeyPair): void => {
      writeFileSync(cert, pair.cert)
      writeFileSync(key, pair.key, { mode: 0o600 })
    }
    write(renewed())
    const files = [`--http-cert=${cert}`, `--http-cert-key=${key}`]
    const flags = [...files, ...files.map((flag) => flag.replace('--http', '--admin'))]
    return new TlsServer(await startServer(t, { workers: 2, flags }), flags, write)
  }

  bot(agent?: Agent) {
    return this.#caller(this.server.botUrl, agent)
  }

  admin(agent?: Agent) {
    return this.#caller(this.server.privateUrl, agent)
  }

  renew(pair = renewed()): KeyPair {
    this.#write(pair)
    return pair
  }

  reload(): Promise<unknown> {
    return outputOf(['reload', '--dir', this.server.dir])
  }

  /** The certificate that a new connection to the bot API gets. */
  async shown(): Promise<string> {
    const { hostname: host, port } = new URL(this.server.botUrl)
    const socket = connectTls({ host, port: Number(port), ca: authority.cert })
    await once(socket, 'secureConnect')
    const certificate = socket.getPeerX509Certificate()?.toString() ?? ''
    socket.destroy()
    return certificate
  }

  async register(): Promise<{ botId: number; token: string }> {
    const names = { first_name: 'Test', username: 'test_bot' }
    const { body } = await this.admin()('POST', '/v1/bots', names)
    return { botId: body.bot_id, token: body.token }
  }

  /** Returns the stream of events as far as it has come when it has an event of this type. */
  async eventsUntil(type: string): Promise<string> {
    const url = `${this.server.privateUrl.replace('http:', 'https:')}/v1/events?after=0`
    const headers = { authorization: `Bearer ${this.server.key}` }
    const signal = AbortSignal.timeout(eventMsMax)
    const outgoing = request(url, { headers, ca: authority.cert, agent: false, signal }).end()
    const [response]: IncomingMessage[] = await once(outgoing, 'response')
    let text = ''
    for await (const chunk of response ?? []) {
      text += String(chunk)
      if (text.includes(type)) break
    }
    outgoing.destroy()
    return text
  }

  #caller(url: string, agent = new Agent({ ca: authority.cert })) {
    const headers = {
      authorization: `Bearer ${this.server.key}`,
      'content-type': 'application/json',
    }
    return (method: string, path: string, content?: object): Promise<Answer> =>
      send({
        method,
        url: url.replace('http:', 'https:') + path,
        headers,
        agent,
        ...(content === undefined ? {} : { body: JSON.stringify(content) }),
      })
  }
}

/** An agent that makes all of its requests on one connection. */
function oneConnection(): Agent {
  return new Agent({ ca: authority.cert, keepAlive: true, maxSockets: 1 })
}

/** Makes calls on one connection, one after the other, until it is stopped, at the latest with its test, and records what fails. */
class RepeatedCall {
  readonly failures: string[] = []
  #isStopped = false
  readonly #agent = oneConnection()
  readonly #run: Promise<void>

  /** @param call - rejects if it fails */
  constructor(t: TestContext, call: (agent: Agent) => Promise<void>) {
    this.#run = this.#repeat(call)
    t.after(() => this.stop())
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#run
    this.#agent.destroy()
  }

  async #repeat(call: (agent: Agent) => Promise<void>): Promise<void> {
    while (!this.#isStopped) {
      await call(this.#agent).catch((error: unknown) => this.failures.push(String(error)))
    }
  }
}

/** Pushes numbered updates. */
class Pusher {
  pushed = 0
  readonly calls: RepeatedCall

  constructor(t: TestContext, tls: TlsServer, botId: number) {
    this.calls = new RepeatedCall(t, async (agent) => {
      const update = { message: { text: `${this.pushed}` } }
      const path = `/v1/bots/${botId}/updates`
      const { status, text } = await tls.admin(agent)('POST', path, update)
      assert.equal(status, 200, text)
      this.pushed += 1
    })
  }
}

/** Polls with the offset of what has arrived. */
class Poller {
  readonly texts: string[] = []
  readonly calls: RepeatedCall

  constructor(t: TestContext, tls: TlsServer, token: string) {
    let offset = 0
    this.calls = new RepeatedCall(t, async (agent) => {
      const parameters = { offset, timeout: 1 }
      const { text, body } = await tls.bot(agent)('POST', `/bot${token}/getUpdates`, parameters)
      assert.equal(body?.ok, true, text)
      for (const update of body.result) {
        this.texts.push(update.message.text)
        offset = update.update_id + 1
      }
    })
  }
}

test('TLS on both listeners: calls of every bot, reloads, commands, and the death of a worker', async (t) => {
  const tls = await TlsServer.start(t)
  const bots = await Promise.all(Array.from({ length: 8 }, () => tls.register()))

  await t.test(
    'a connection that carries calls of bots of every worker answers them all',
    async () => {
      const agent = oneConnection()
      for (const { botId, token } of bots) {
        const { body } = await tls.bot(agent)('GET', `/bot${token}/getMe`)
        assert.equal(body.result.id, botId)
      }
      agent.destroy()
      const { text } = await tls.admin()('GET', '/metrics')
      const value = (name: string) =>
        Number(new RegExp(`^postbote_${name} (.*)$`, 'm').exec(text)?.[1])
      assert(value('requests_forwarded_total') > 0)
      assert(value('tls_handshakes_total') > 8)
    },
  )

  await t.test(
    'reloads with renewed files fail no request, and new connections get the new certificate',
    async (own) => {
      const pushers = bots.slice(0, 4).map(({ botId }) => new Pusher(own, tls, botId))
      const pollers = bots.slice(0, 4).map(({ token }) => new Poller(own, tls, token))
      for (let nth = 0; nth < 2; nth++) {
        const { cert } = tls.renew()
        await tls.reload()
        assert.equal(await tls.shown(), new X509Certificate(cert).toString())
      }
      await Promise.all(pushers.map(({ calls }) => calls.stop()))
      for (const [nth, poller] of pollers.entries()) {
        const pusher = pushers[nth]!
        await until(() => poller.texts.length >= pusher.pushed)
        await poller.calls.stop()
        assert.deepEqual([...pusher.calls.failures, ...poller.calls.failures], [])
        assert.deepEqual(
          poller.texts,
          Array.from({ length: pusher.pushed }, (_, at) => `${at}`),
        )
      }
    },
  )

  await t.test(
    'a reload with a key of another certificate is refused by name, and keeps the old one',
    async () => {
      const before = await tls.shown()
      const good = { cert: before, key: '' }
      const other = renewed()
      tls.renew({ ...good, key: other.key })
      await assert.rejects(tls.reload(), /--http-cert .*--http-cert-key .*does not belong/)
      assert.equal(await tls.shown(), before)
      assert(!(await tls.eventsUntil('certificate.refused')).includes('PRIVATE KEY'))
      // Also a worker that dies now starts with the old one.
      process.kill(tls.server.workerPid(), 'SIGKILL')
      // A connection may have gone to the worker that dies.
      const isReady = async (): Promise<boolean> =>
        (await tls.admin()('GET', '/readyz')).status === 200
      await until(() => isReady().catch(() => false))
      assert.equal(await tls.shown(), before)
      tls.renew()
      await tls.reload()
    },
  )

  await t.test(
    'the doctor and the commands of this machine say that the renewed files are not read yet',
    async () => {
      const args = [`--dir=${tls.server.dir}`, ...tls.flags]
      const list = [
        'bots',
        'list',
        `--dir=${tls.server.dir}`,
        `--admin-port=${new URL(tls.server.privateUrl).port}`,
        ...tls.flags.filter((flag) => flag.startsWith('--admin')),
      ]
      // Its exit code also depends on the machine.
      const doctor = async (): Promise<string> => (await postbote(['doctor', ...args])).out
      assert.doesNotMatch(await doctor(), /another certificate/)
      tls.renew()
      const warnings = /WARN .*another certificate than .*: run postbote reload/g
      assert.equal((await doctor()).match(warnings)?.length, 2)
      const refused = await postbote(list)
      assert.equal(refused.code, 1)
      assert.match(refused.err, /another certificate than .*: after a renewal, reload the server/)
      // Its key is what counts, also when it has expired.
      tls.renew(
        issueCertificate({ name: 'x', from: dateIn(-2), until: dateIn(-1), issuer: authority }),
      )
      await tls.reload()
      assert((await outputOf(list)).includes(`${bots[0]!.botId}`))
      tls.renew()
      await tls.reload()
    },
  )

  await t.test('a worker that is killed during polls loses nothing', async (own) => {
    const { botId, token } = bots[5]!
    const poller = new Poller(own, tls, token)
    const pusher = new Pusher(own, tls, bots[6]!.botId)
    for (const which of [0, 1]) {
      process.kill(tls.server.workerPid(which), 'SIGKILL')
      await until(async () => {
        const answer = await tls
          .admin()('GET', '/readyz')
          .catch(() => undefined)
        return answer?.status === 200
      })
    }
    await pusher.calls.stop()
    const { status } = await tls.admin()('POST', `/v1/bots/${botId}/updates`, {
      message: { text: 'after' },
    })
    assert.equal(status, 200)
    await until(() => poller.texts.length === 1)
    await poller.calls.stop()
  })

  await t.test(
    'plain HTTP is closed without an answer, and the session of a browser is only for TLS',
    async () => {
      for (const url of [tls.server.botUrl, tls.server.privateUrl]) {
        const { hostname, port } = new URL(url)
        const socket = connect(Number(port), hostname)
        socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
        let received = ''
        for await (const chunk of socket) received += String(chunk)
        assert(!received.includes('HTTP/1.1'))
      }
      const { headers } = await tls.admin()('POST', '/v1/session')
      assert.match(String(headers['set-cookie']), /^__Host-.*; Secure/)
    },
  )

  await t.test(
    'the commands of this machine and the client of producers reach the private listener',
    async () => {
      const place = [
        `--dir=${tls.server.dir}`,
        `--admin-port=${new URL(tls.server.privateUrl).port}`,
      ]
      const own = tls.flags.filter((flag) => flag.startsWith('--admin'))
      assert((await outputOf(['bots', 'list', ...place, ...own])).includes(`${bots[0]!.botId}`))
      const file = join(temporaryDirectory(t), 'ca.pem')
      writeFileSync(file, authority.cert)
      const url = tls.server.privateUrl.replace('http:', 'https:')
      const unknown = new PostboteClient({ url, key: tls.server.key, retries: 0 })
      await assert.rejects(
        unknown.push(bots[7]!.botId, { message: {} }),
        /UNABLE_TO_VERIFY|SELF_SIGNED|could not connect/,
      )
      await unknown.close()
      const key = join(tls.server.dir, 'admin.key')
      const far = ['bots', 'list', `--url=${url}`, `--key-file=${key}`]
      // Node.js reads this variable when it starts.
      const shown = await postboteProcess(far, { NODE_EXTRA_CA_CERTS: file })
      assert(shown.out.includes(`${bots[0]!.botId}`))
    },
  )
})

test('a server does not start with files that are no pair, and says which', async (t) => {
  const directory = temporaryDirectory(t)
  const [one, other] = [renewed(), renewed()]
  const file = (name: string, text: string): string => {
    writeFileSync(join(directory, name), text)
    return join(directory, name)
  }
  const cert = file('cert.pem', one.cert)
  const key = file('key.pem', one.key)
  const wrong = [
    [['--http-cert', cert], /--http-cert: expected http-cert-key with it/],
    [['--admin-cert-key', key], /--admin-cert-key: expected admin-cert with it/],
    [
      ['--http-cert', cert, '--http-cert-key', key, '--http-ip-address', join(directory, 's')],
      /Unix socket/,
    ],
    [
      ['--http-cert', cert, '--http-cert-key', file('o.pem', other.key)],
      /--http-cert .*does not belong/,
    ],
    [
      ['--admin-cert', cert, '--admin-cert-key', join(directory, 'none')],
      /--admin-cert-key .*none cannot be read/,
    ],
    [
      ['--http-cert', file('x.pem', 'x'), '--http-cert-key', key],
      /--http-cert .*expected a certificate/,
    ],
  ] as const
  for (const [flags, expected] of wrong) {
    const args = ['serve', '--dir', join(directory, 'data'), '--http-port=0', '--admin-port=0']
    const refused = await postbote([...args, ...flags])
    assert.notEqual(refused.code, 0)
    assert.match(refused.output, expected)
  }
})
