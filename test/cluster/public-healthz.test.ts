/** Probes on the public listener with a real server, with `--public-healthz` and without. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { freshBotOf } from '../support/server/bot-of.ts'
import { send, startServer } from '../support/server/server.ts'
import { shared, sharedServer } from '../support/server/shared-server.ts'

const probed = shared((owner) => startServer(owner, { workers: 2, flags: ['--public-healthz'] }))
const plain = sharedServer()

test('with --public-healthz, both listeners answer probes alike, for any Host and without a token', async () => {
  const server = await probed()
  for (const [path, word] of [
    ['/healthz', 'ok'],
    ['/readyz', 'ready'],
  ]) {
    const own = await send({ method: 'GET', url: `${server.privateUrl}${path}` })
    for (const method of ['GET', 'HEAD']) {
      const headers = { host: 'bots.example.com' }
      const {
        status,
        text,
        headers: got,
      } = await send({ method, url: server.botUrl + path, headers })
      assert.equal(status, own.status)
      assert.equal(text, method === 'HEAD' ? '' : own.text)
      assert.equal(got['content-type'], own.headers['content-type'])
    }
    assert.equal(own.text, JSON.stringify({ status: word }))
  }
  const { status } = await send({ method: 'GET', url: `${server.botUrl}/metrics` })
  assert.equal(status, 404)
})

test('probes take no slots of wrong tokens, and calls of bots go on beside thousands of them', async () => {
  const server = await probed()
  const { botId, token } = await server.register(freshBotOf(0))
  const probe = async (): Promise<number> =>
    (await send({ method: 'GET', url: `${server.botUrl}/readyz` })).status
  const statuses = await Promise.all(Array.from({ length: 400 }, probe))
  assert.ok(statuses.every((status) => status === 200))
  assert.equal((await server.call(token, 'getMe')).status, 200)
  await server.admin('DELETE', `/v1/bots/${botId}`)
  assert.equal((await server.call(token, 'getMe')).status, 401)
})

test('without the option, a probe of the public listener is an unknown path', async () => {
  const server = await plain()
  for (const path of ['/healthz', '/readyz']) {
    const { status, text } = await send({ method: 'GET', url: server.botUrl + path })
    assert.equal(status, 404)
    assert.equal(text, '{"ok":false,"error_code":404,"description":"Not Found"}')
  }
})
