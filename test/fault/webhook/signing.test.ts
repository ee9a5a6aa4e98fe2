import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import type { StoredSigningKey } from '../../../src/shard/records/bot-record.ts'
import { createSigningKey } from '../../../src/delivery/signing-keys.ts'
import { isSignedWith } from '../../support/webhook/verify-signature.ts'
import { endpoint, ok, type Received, stopAfter } from '../../support/webhook/webhook-endpoints.ts'
import { setUpWebhook } from '../../support/webhook/webhook-setup.ts'

function signedWith(received: Received | undefined, key: string): boolean {
  return received !== undefined && isSignedWith(key, received.request.headers, received.body)
}

test('all attempts for an update have the same id and different signatures', async (context) => {
  const { url, received } = await endpoint(context, (response, _received, index) => {
    response.writeHead(index === 0 ? 503 : 200).end()
  })
  const { stored, shown } = createSigningKey('hmac-sha256', { nowMs: Date.now(), randomBytes })
  const keys = [stored]
  const signing = { idPrefix: '4711-', keys: () => keys }
  const setup = stopAfter(context, setUpWebhook({ url, secretToken: 'a' }, { signing }))
  setup.source.push({ updateId: 7 })
  setup.dispatcher.start(0)
  await setup.source.empty()
  assert.equal(received.length, 2)
  for (const one of received) {
    assert.equal(one.request.headers['webhook-id'], '4711-7')
    assert.equal(one.request.headers['x-telegram-bot-api-secret-token'], 'a')
    assert.equal(one.request.headers['content-type'], 'application/json')
    assert(signedWith(one, shown))
  }
})

test('keys change between two deliveries on one connection, and none is lost or sent twice', async (context) => {
  const first = createSigningKey('hmac-sha256', { nowMs: Date.now(), randomBytes })
  const second = createSigningKey('ed25519', { nowMs: Date.now(), randomBytes })
  let keys: readonly StoredSigningKey[] | undefined
  const { url, received } = await endpoint(context, (response, one, index) => {
    if (index === 0) keys = [first.stored]
    if (index === 1) keys = [second.stored, { ...first.stored, endsAtMs: Date.now() + 60_000 }]
    if (index === 2) keys = [second.stored]
    if (index === 3) keys = undefined
    ok(response, one, index)
  })
  const signing = { idPrefix: '4711-', keys: () => keys }
  const setup = stopAfter(context, setUpWebhook({ url }, { signing }))
  for (let updateId = 1; updateId <= 5; updateId++) setup.source.push({ updateId })
  setup.dispatcher.start(0)
  await setup.source.empty()
  const seen = received.map((one) => [signedWith(one, first.shown), signedWith(one, second.shown)])
  assert.deepEqual(seen, [
    [false, false],
    [true, false],
    [true, true],
    [false, true],
    [false, false],
  ])
  assert(
    received.every(({ request }, at) => at === 0 || at === 4 || 'webhook-id' in request.headers),
  )
  assert.equal(received[4]?.request.headers['webhook-id'], undefined)
  assert.equal(new Set(received.map(({ request }) => request.socket.remotePort)).size, 1)
})
