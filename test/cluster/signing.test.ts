/** Signing keys of a bot, from the private API to the headers that its webhook gets. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type RegisteredBot, type Server, startServer } from '../support/server/server.ts'
import { isSignedWith } from '../support/webhook/verify-signature.ts'
import { startSink, type WebhookSink } from '../support/webhook/webhook-sink.ts'

interface World {
  readonly server: Server
  readonly sink: WebhookSink
  readonly bot: RegisteredBot
}

async function open(t: TestContext): Promise<World> {
  const server = await startServer(t, { flags: ['--local'] })
  const sink = await startSink(t)
  const bot = await server.register()
  const set = await server.call(bot.token, 'setWebhook', { url: sink.url('/main') })
  assert.equal(set.status, 200, set.text)
  return { server, sink, bot }
}

/** Returns for each key whether the next update's delivery is signed with it. */
async function signersOf({ server, sink, bot }: World, keys: readonly string[], query = '') {
  const updateId = await server.push(bot.botId, { message: { text: 'signed?' } }, query)
  for (;;) {
    // After a kill -9 the last delivery before it may arrive again.
    const found = sink.deliveries.find(({ update }) => update.update_id === updateId)
    if (found !== undefined) return keys.map((key) => isSignedWith(key, found.headers, found.text))
    await sink.atLeast(sink.deliveries.length + 1)
  }
}

test('keys are created, rotated with an overlap, listed and removed while deliveries continue', async (t) => {
  const world = await open(t)
  const { server, sink, bot } = world
  const path = `/v1/bots/${bot.botId}/signing-keys`
  assert.deepEqual((await server.admin('GET', path)).body, { signing_keys: [] })
  await signersOf(world, [])
  assert(!('webhook-id' in sink.deliveries[0]!.headers), 'without keys nothing is added')

  const first = (await server.admin('POST', path, { type: 'hmac-sha256' })).body
  assert.deepEqual(await signersOf(world, [first.key]), [true])
  assert.equal(
    sink.deliveries[1]!.headers['webhook-id'],
    `${bot.botId}-${sink.deliveries[1]!.update.update_id}`,
  )
  const second = (await server.admin('POST', path, { type: 'ed25519', overlap: 60 })).body
  assert.equal(second.type, 'ed25519')
  assert.deepEqual(await signersOf(world, [first.key, second.key]), [true, true])

  const listed = await server.admin('GET', path)
  assert.deepEqual(
    listed.body.signing_keys.map((key: Record<string, unknown>) => [key['key_id'], key['type']]),
    [
      [second.key_id, 'ed25519'],
      [first.key_id, 'hmac-sha256'],
    ],
  )
  const [current, former] = listed.body.signing_keys
  assert.equal(current.ends_at, null)
  assert(former.ends_at >= former.created_at + 60)
  for (const { key } of [first, second]) assert(!listed.text.includes(key.split('_')[1]))

  const third = (await server.admin('POST', path, { type: 'hmac-sha256' })).body
  const all = [first.key, second.key, third.key]
  assert.deepEqual(await signersOf(world, all), [true, false, true], 'no overlap: at once')
  const removed = await server.admin('DELETE', `${path}/${first.key_id}`)
  assert.deepEqual(removed.body, { key_id: first.key_id, removed: true })
  assert.deepEqual(await signersOf(world, all), [false, false, true])
  const again = await server.admin('DELETE', `${path}/${first.key_id}`)
  assert.deepEqual([again.status, again.body.error.code], [404, 'UNKNOWN_SIGNING_KEY'])
  assert.deepEqual((await server.admin('DELETE', path)).body, { removed: 1 })
  assert.deepEqual(await signersOf(world, all), [false, false, false])
  assert.equal(new Set(sink.deliveries.map(({ update }) => update.update_id)).size, 6)
})

test('keys survive kill -9 and a new setWebhook, and the /test/ queue has separate keys', async (t) => {
  const world = await open(t)
  const { server, sink, bot } = world
  const path = `/v1/bots/${bot.botId}/signing-keys`
  const main = (await server.admin('POST', path, { type: 'hmac-sha256' })).body.key
  const tested = (await server.admin('POST', `${path}?test=true`, { type: 'hmac-sha256' })).body.key
  await server.call(bot.token, 'test/setWebhook', { url: sink.url('/test') })
  const keys = [main, tested]
  assert.deepEqual(await signersOf(world, keys, 'test=true'), [false, true])
  assert.match(
    String(sink.deliveries[0]!.headers['webhook-id']),
    new RegExp(`^${bot.botId}-test-\\d+$`),
  )
  await server.kill()
  const after = await server.restart()
  assert.deepEqual(await signersOf({ ...world, server: after }, keys), [true, false])
  const moved = await after.call(bot.token, 'setWebhook', { url: sink.url('/moved') })
  assert.equal(moved.body.description, 'Webhook was set')
  assert.deepEqual(await signersOf({ ...world, server: after }, keys), [true, false])
  assert.equal(sink.deliveries.at(-1)!.path, '/moved')
  for (const key of keys) assert(!after.output().includes(key.split('_')[1]))
})

test('an invalid key is refused, and a bot has at most four keys', async (t) => {
  const { server, bot } = await open(t)
  const path = `/v1/bots/${bot.botId}/signing-keys`
  const bad = [{}, { type: 'md5' }, { type: 'ed25519', overlap: -1 }, { type: 'ed25519', x: 1 }]
  for (const body of bad) {
    const { status, text } = await server.admin('POST', path, body)
    assert.equal(status, 400, text)
  }
  const odd = await server.admin('POST', path, { type: ['ed25519'] })
  assert.match(
    odd.body.error.message,
    /type: expected one of hmac-sha256, ed25519, got a list of 1$/,
  )
  const unknown = await server.admin('POST', '/v1/bots/100/signing-keys', { type: 'ed25519' })
  assert.deepEqual([unknown.status, unknown.body.error.code], [404, 'UNKNOWN_BOT'])
  const oddTest = await server.admin('GET', `${path}?tset=true`)
  assert.equal(oddTest.status, 400, oddTest.text)
  const statuses: number[] = []
  for (let nth = 0; nth < 5; nth++) {
    const asked = await server.admin('POST', path, { type: 'ed25519', overlap: 600 })
    statuses.push(asked.status)
  }
  assert.deepEqual(statuses, [200, 200, 200, 200, 409])
})
