/** Uploaded certificates of a real server: as real clients send them, across restarts, and as the only trust root. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { certificateUploads, uploadWrites } from '../support/webhook/certificate-uploads.ts'
import { issueCertificate, makeCertificate } from '../support/network/certificates.ts'
import { assertRefused, RawBot, requestBytes } from '../support/bots/raw-bot.ts'
import { RawConnection } from '../support/producers/raw-http.ts'
import { type Server, startServer } from '../support/server/server.ts'
import { temporaryDirectory } from '../support/kit/temporary-directory.ts'
import { startSink } from '../support/webhook/webhook-sink.ts'
import { until } from '../support/kit/until.ts'
import { uploadOf } from '../support/webhook/webhook-verification.ts'

async function infoOf(server: Server, token: string): Promise<Record<string, unknown>> {
  return (await server.call(token, 'getWebhookInfo')).body.result
}

async function send(
  server: Server,
  writes: readonly string[],
): Promise<{ readonly status: number; readonly text: string }> {
  const connection = RawConnection.to(server.botUrl)
  for (const write of writes) connection.write(write)
  const { status, body } = await connection.answer()
  connection.socket.destroy()
  return { status, text: body }
}

test('only the certificate that a real client uploads is trusted, even after restarts', async (t) => {
  const authority = issueCertificate({ name: 'Public Authority', isAuthority: true })
  const authorityFile = join(temporaryDirectory(t), 'authority.pem')
  writeFileSync(authorityFile, authority.cert)
  const own = makeCertificate('localhost')
  const sink = await startSink(t, (_delivery, response) => void response.end(), own)
  const started = await startServer(t, {
    flags: ['--local'],
    env: { NODE_EXTRA_CA_CERTS: authorityFile },
  })
  const bots = await Promise.all(
    certificateUploads.map(async (each) => {
      const bot = await started.register()
      const url = sink.url(`/${bot.botId}`)
      const writes = uploadWrites(each, { token: bot.token, url, certificate: own.cert })
      assert.deepEqual(
        await send(started, writes),
        { status: 200, text: '{"ok":true,"result":true,"description":"Webhook was set"}' },
        each.client,
      )
      return { ...bot, url, upload: each }
    }),
  )
  const deliver = async (server: Server): Promise<void> => {
    const pushed = await Promise.all(
      bots.map(async ({ botId }) => `/${botId} ${await server.push(botId, { message: {} })}`),
    )
    // After kill -9, earlier updates may be delivered once more.
    await until(() => {
      const seen = new Set(sink.deliveries.map(({ path, update }) => `${path} ${update.update_id}`))
      return pushed.every((each) => seen.has(each))
    })
    for (const {
      token,
      upload: { client, step },
    } of bots) {
      const info = await infoOf(server, token)
      assert.equal(info['has_custom_certificate'], true, client)
      assert.equal(info['max_connections'], Number(step.reads['max_connections'] ?? 40), client)
      const names = step.reads['allowed_updates'] ?? 'null'
      assert.deepEqual(info['allowed_updates'] ?? null, JSON.parse(names), client)
    }
  }
  await deliver(started)
  await started.kill()
  const server = await started.restart()
  await deliver(server)

  // A certificate that all others trust is refused here, until the webhook is set without its own certificate.
  sink.showCertificate(issueCertificate({ name: 'localhost', issuer: authority }))
  const [bot] = bots
  assert(bot !== undefined)
  await server.push(bot.botId, { message: {} })
  await until(async () => (await infoOf(server, bot.token))['last_error_message'] !== undefined)
  assert.equal(
    (await infoOf(server, bot.token))['last_error_message'],
    'TLS: certificate cannot be verified: unknown issuer, or an intermediate certificate is missing',
  )
  const before = sink.deliveries.length
  const { text } = await server.call(bot.token, 'setWebhook', { url: bot.url })
  assert.match(text, /Webhook was set/)
  await sink.atLeast(before + 1)
  assert.equal((await infoOf(server, bot.token))['has_custom_certificate'], false)
})

test('a certificate is parsed after the limit of one setWebhook a second and compared before it', async (t) => {
  const own = makeCertificate('localhost')
  const sink = await startSink(t, (_delivery, response) => void response.end(), own)
  const server = await startServer(t, { flags: ['--local'] })
  const bot = await RawBot.register(server)
  const upload = (pem: string) => bot.call('setWebhook', uploadOf(sink.url('/'), pem, false))
  // Base64 of something that is not a certificate: only parsing it can show that.
  const broken = own.cert.replace(/\n.{8}/, '\nAAAAAAAA')
  // Both calls are pipelined, so that even on a slow machine the second one arrives early.
  const connection = await bot.open()
  for (const pem of [own.cert, broken]) {
    const call = uploadOf(sink.url('/'), pem, false)
    for (const piece of requestBytes(`/bot${bot.token}/setWebhook`, call)) connection.write(piece)
  }
  assert.match((await connection.answer()).body, /Webhook was set/)
  assert.match((await connection.answer()).body, /"error_code":429.*"retry_after":1}/)
  connection.socket.destroy()
  for (const pem of [own.cert, `x\n${own.cert.replaceAll('\n', '\r\n')}`]) {
    assert.equal((await upload(pem)).json.description, 'Webhook is already set')
  }
  let reply = await upload(broken)
  await until(async () => {
    if (reply.status === 429) reply = await upload(broken)
    return reply.status !== 429
  })
  assertRefused(reply, 400, /^Bad Request: bad webhook: certificate cannot be parsed$/)
  assert.equal((await bot.info())['has_custom_certificate'], true)
})
