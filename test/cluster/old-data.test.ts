/** The data directory and the export of an earlier version are served with everything in them. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { postbote } from '../support/programs/postbote.ts'
import { oldData } from '../support/server/old-data.ts'
import { startServer } from '../support/server/server.ts'
import { temporaryDirectory } from '../support/kit/temporary-directory.ts'
import { startSink } from '../support/webhook/webhook-sink.ts'

const data = oldData()

test('a data directory of version 1.0 is served in full', async (t) => {
  await isServed(t, data.directory)
})

test('an export of version 1.0 is imported and served in full', async (t) => {
  const directory = join(temporaryDirectory(t), 'data')
  const { code, output } = await postbote([
    'import',
    data.exported,
    '--dir',
    directory,
    '--skip-ids=0',
  ])
  assert.equal(code, 0, output)
  await isServed(t, directory)
})

async function isServed(t: TestContext, directory: string): Promise<void> {
  const { tokens, firstPendingId, removedId, webhookUrl } = data.facts
  const sink = await startSink(t)
  const server = await startServer(t, { data: directory, workers: 1, flags: ['--local'] })
  assert.equal((await server.admin('GET', '/readyz')).status, 200)

  await t.test('pending updates keep their ids, their order and their texts', async () => {
    const { body } = await server.call(tokens.polling, 'getUpdates')
    const expected = [
      messageOf('table-0'),
      messageOf('table-1'),
      { chat_member: { chat: { id: 7 } } },
      messageOf('key-0'),
      messageOf('log-0'),
      { message: { chat: { id: -5 }, text: 'log-1' } },
      messageOf('key-1'),
    ]
    assert.deepEqual(
      body.result,
      expected.map((update, at) => ({ update_id: firstPendingId + at, ...update })),
    )
    const next = await server.push(100, { message: { text: 'new' } })
    assert.equal(next, firstPendingId + expected.length)
    // The bot did not ask for this type.
    assert.equal(await server.push(100, { poll: {} }), undefined)
  })

  await t.test('the /test/ queue keeps them, too', async () => {
    const { body } = await server.call(tokens.polling, 'test/getUpdates')
    assert.deepEqual(textsOf(body.result), ['test-0'])
    const idle = await server.call(tokens.idle[1], 'test/getUpdates')
    assert.deepEqual(textsOf(idle.body.result), ['idle-0'])
  })

  await t.test(
    'both tokens of a renewed bot are valid, and those of a removed bot are not',
    async () => {
      for (const token of tokens.idle) {
        assert.equal((await server.call(token, 'getMe')).body.result.id, 104)
      }
      assert.equal((await server.call(tokens.removed, 'getMe')).status, 401)
      const { body } = await server.admin('POST', '/v1/bots', {
        bot_id: 103,
        first_name: 'Back',
        username: 'back_bot',
      })
      assert.equal(body.bot_id, 103)
      assert.equal(await server.push(103, { message: {} }), removedId + 1)
    },
  )

  await t.test('a paused webhook keeps its settings and its signing keys', async () => {
    const { body } = await server.call(tokens.paused, 'getWebhookInfo')
    const { url, max_connections, allowed_updates, pending_update_count } = body.result
    assert.deepEqual(
      [url, max_connections, allowed_updates, pending_update_count],
      [webhookUrl, 7, ['message'], 3],
    )
    const keys = await server.admin('GET', '/v1/bots/101/signing-keys')
    assert.deepEqual(
      keys.body.signing_keys.map(({ type }: { type: string }) => type),
      ['ed25519', 'hmac-sha256'],
    )
    await server.call(tokens.paused, 'setWebhook', { url: sink.url('/new') })
    const paused = await server.admin('GET', '/v1/bots/101')
    assert.equal(paused.body.paused, true)
    await server.admin('POST', '/v1/bots/101/resume')
    await sink.atLeast(3)
    assert.deepEqual(textsOf(sink.deliveries.map(({ update }) => update)), [
      'paused-0',
      'paused-1',
      'paused-2',
    ])
    assert.match(String(sink.deliveries[0]?.headers['webhook-signature']), /v1a,/)
  })

  await t.test('dead letters are listed', async () => {
    const { body } = await server.admin('GET', '/v1/bots/102/dead-letters')
    const deadLetters = body.dead_letters.map((deadLetter: Record<string, unknown>) => [
      deadLetter['reason'],
      deadLetter['ordering_key'],
      deadLetter['attempts'],
    ])
    assert.deepEqual(deadLetters, [
      ['refused', '=l', 1],
      ['refused', '=l', 1],
    ])
  })
}

function textsOf(updates: readonly { readonly message?: Readonly<Record<string, unknown>> }[]) {
  return updates.map(({ message }) => message?.['text'])
}

function messageOf(text: string): object {
  return { message: { chat: { id: 1 }, text } }
}
