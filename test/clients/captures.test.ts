/**
 * Replays the requests that real bot clients send (captures/*.http) byte for byte to a real server with two workers,
 * and the responses of their webhook receivers.
 *
 * Their webhooks are at https://bot.example.com. In a network namespace, a real DNS server resolves this name, the
 * address looks public, the port is 443, an authority that the system trusts has issued the certificate, and the server
 * runs without --local. If no namespace can be created, only the sessions without a webhook are replayed.
 */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { CaptureReplay, messageTo, paces } from '../support/bots/capture-replay.ts'
import { CapturedEndpoint } from '../support/bots/captured-endpoint.ts'
import {
  fill,
  readCaptures,
  type RequestStep,
  requestsOf,
  type Session,
} from '../support/bots/captures.ts'
import {
  type CertificateUpload,
  certificateUploads,
  uploadWrites,
} from '../support/webhook/certificate-uploads.ts'
import { issueCertificate, makeCertificate } from '../support/network/certificates.ts'
import { startDns } from '../support/network/dns-server.ts'
import {
  isInNamespace,
  namespaceObstacle,
  runInNamespace,
  setUpNamespace,
} from '../support/kit/network-namespace.ts'
import { type RegisteredBot, type Server, startServer } from '../support/server/server.ts'
import { temporaryDirectory } from '../support/kit/temporary-directory.ts'

const address = '93.184.216.34'
const botHost = 'bot.example.com'
const captures = readCaptures()
/** This is a large number, because most clients wait: for updates, or for writes to disk. */
const clientsAtOnce = 12

interface World {
  readonly server: Server
  readonly endpoint: CapturedEndpoint | undefined
  nextBotId: number
}

if (isInNamespace) {
  test('captured requests of clients and of their webhook receivers', {
    concurrency: clientsAtOnce,
  }, async (t) => {
    setUpNamespace(t, [address])
    const { names } = await startDns(t, { port: 53 })
    names.set(botHost, [address])
    const authority = issueCertificate({ name: 'Test Authority', isAuthority: true })
    const file = join(temporaryDirectory(t), 'ca.pem')
    writeFileSync(file, authority.cert)
    const identity = issueCertificate({ name: botHost, issuer: authority })
    const endpoint = await CapturedEndpoint.start(t, address, identity)
    const server = await startServer(t, {
      workers: 2,
      // A handshake takes longer on a busy machine, and no deadline is tested here.
      flags: ['--webhook-verify-timeout=60'],
      env: { NODE_EXTRA_CA_CERTS: file },
    })
    const world = { server, endpoint, nextBotId: 123_000_000 }
    await replayAll(t, world)
    await uploadAll(t, world)
  })
} else {
  const obstacle = namespaceObstacle()
  const options = obstacle === undefined ? {} : { skip: obstacle }
  test('requests of clients get the responses that the clients need', options, async (t) => {
    await runInNamespace(t, fileURLToPath(import.meta.url))
  })
  if (obstacle !== undefined) {
    test('captured requests of clients without webhooks', {
      concurrency: clientsAtOnce,
    }, async (t) => {
      const server = await startServer(t, { workers: 2 })
      await replayAll(t, { server, endpoint: undefined, nextBotId: 123_000_000 })
    })
  }
}

test('every recorded length is right for every id in the requests', () => {
  const place = { token: `100000000:${'a'.repeat(35)}`, host: 'h' }
  for (const capture of captures) {
    for (const { method, writes } of requestsOf(capture)) {
      const ids = { update2: 100_000_001, update3: 999_999_999 }
      const text = fill(writes.join(''), { ...place, ...ids })
      const headEnd = text.indexOf('\r\n\r\n') + 4
      const body = Buffer.from(text).subarray(headEnd)
      const about = `${capture.client}, ${method}`
      if (/^transfer-encoding: chunked\r$/im.test(text.slice(0, headEnd))) {
        assert.equal(endOfChunks(body), body.length, about)
      } else {
        const length = /^content-length: (\d+)\r$/im.exec(text.slice(0, headEnd))?.[1]
        assert.equal(Number(length ?? 0), body.length, about)
      }
    }
  }
})

/** Returns the offset after the last chunk. */
function endOfChunks(body: Buffer): number {
  for (let at = 0; ; ) {
    const sizeEnd = body.indexOf('\r\n', at)
    const size = Number.parseInt(body.toString('latin1', at, sizeEnd), 16)
    at = sizeEnd + 2 + size + 2
    assert.equal(body.toString('latin1', at - 2, at), '\r\n')
    if (size === 0) return at
  }
}

async function replayAll(t: TestContext, world: World): Promise<void> {
  const replays = captures.flatMap(({ client, sessions }) =>
    paces.map((pace) =>
      t.test(
        `${client} gets the responses that it needs when its requests are sent ${pace}`,
        async () => {
          const possible = sessions.filter(
            (each) => world.endpoint !== undefined || !setsWebhook(each),
          )
          await Promise.all(
            possible.map(async (session) => {
              const { server, endpoint } = world
              const given = await (asksForUpdates(session)
                ? botWithUpdate(world)
                : botWithout(world))
              await new CaptureReplay({ server, endpoint, session, pace, ...given }).run()
            }),
          )
        },
      ),
    ),
  )
  await Promise.all(replays)
}

function setsWebhook(session: Session): boolean {
  return session.steps.some((step) => step.kind === 'request' && step.sets !== undefined)
}

function asksForUpdates({ steps }: Session): boolean {
  const kinds = ['updates', 'nothing']
  return steps.some((step) => step.kind === 'request' && kinds.includes(step.needs.kind))
}

interface GivenBot {
  readonly bot: RegisteredBot
  readonly firstId: number | undefined
}

async function botWithout(world: World): Promise<GivenBot> {
  return { bot: await world.server.register(world.nextBotId++), firstId: undefined }
}

/** Registers a bot with one pending update, whose id has nine digits. One bot in four starts with such a large id. */
async function botWithUpdate(world: World): Promise<GivenBot> {
  for (;;) {
    const { bot } = await botWithout(world)
    const firstId = await world.server.push(bot.botId, messageTo(bot, 1))
    if (firstId !== undefined && firstId >= 100_000_000) return { bot, firstId }
  }
}

/** The captured uploads contain no certificate. Here they contain the endpoint's, which no authority has issued. */
async function uploadAll(t: TestContext, world: World): Promise<void> {
  const { server, endpoint } = world
  assert(endpoint !== undefined)
  const own = makeCertificate(botHost)
  endpoint.show(own)
  const uploads = certificateUploads.flatMap((upload) =>
    paces.map((pace) =>
      t.test(
        `a certificate that ${upload.client} uploads is trusted when its request is sent ${pace}`,
        async () => {
          const { bot } = await botWithout(world)
          const session = sessionWith(upload, { world, bot, certificate: own.cert })
          await new CaptureReplay({
            server,
            endpoint,
            bot,
            session,
            pace,
            firstId: undefined,
          }).run()
          assert.equal((await endpoint.requests(bot.botId, 1)).length, 1)
        },
      ),
    ),
  )
  await Promise.all(uploads)
}

interface UploadMeans {
  readonly world: World
  readonly bot: RegisteredBot
  readonly certificate: string
}

/** A session that sets the webhook with this certificate and receives an update. */
function sessionWith(upload: CertificateUpload, { world, bot, certificate }: UploadMeans): Session {
  const { client, step } = upload
  const { url, max_connections, allowed_updates } = step.reads
  const { host } = new URL(world.server.botUrl)
  const names: unknown = JSON.parse(allowed_updates ?? 'null')
  const set: RequestStep = {
    ...step,
    writes: uploadWrites(upload, { token: bot.token, host, certificate }),
    needs: { kind: 'true', description: 'Webhook was set' },
    sets: {
      url,
      has_custom_certificate: true,
      max_connections: Number(max_connections ?? 40),
      allowed_updates: names ?? undefined,
    },
  }
  const writes = ['HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n']
  return { name: client, steps: [set, { kind: 'receiver', writes }] }
}
