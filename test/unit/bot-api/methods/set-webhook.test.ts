import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { BotQueue } from '../../../../src/bots/bot-queue.ts'
import { makeSetWebhook } from '../../../../src/bot-api/methods/set-webhook.ts'
import { read } from '../../../support/bots/read-params.ts'

const setWebhook = makeSetWebhook({ webhookConnectionsMax: 100 })

/** Calls the method with these parameters; returns its description and how often the webhook was changed. */
async function call(query: string, unread?: string) {
  let changes = 0
  const change = async (): Promise<string> => {
    changes += 1
    return 'done'
  }
  const queue = {
    webhook: { set: change, delete: change },
    note: () => undefined,
  } as unknown as BotQueue
  const presence = { onGone: undefined }
  try {
    const body = unread === undefined ? {} : { body: unread, type: 'text/plain' }
    const params = await read({ query, ...body })
    const reply = await setWebhook({ queue, params, token: '', presence })
    return { said: 'description' in reply ? reply.description : undefined, changes }
  } catch (error) {
    return { said: error instanceof Error ? error.message : undefined, changes }
  }
}

test('a certificate that is not uploaded as a file is refused, and nothing is changed', async () => {
  const said = 'Bad Request: bad webhook: certificate must be uploaded as a file'
  for (const text of ['-----BEGIN CERTIFICATE-----', '/etc/cert.pem', 'attach://none']) {
    const query = `url=https://bots.example/&certificate=${encodeURIComponent(text)}`
    assert.deepEqual(await call(query), { said, changes: 0 })
  }
})

test('an empty certificate is none, and without a url no certificate matters', async () => {
  const done = { said: 'done', changes: 1 }
  assert.deepEqual(await call('url=https://bots.example/&certificate='), done)
  assert.deepEqual(await call('url=https://bots.example/'), done)
  assert.deepEqual(await call('certificate=x'), done)
})

test('a body that is not read never deletes the webhook', async () => {
  const { said, changes } = await call('', '{"url":"https://bots.example/"}')
  assert.match(said ?? '', /^Bad Request: expected the url in .*; nothing was changed$/)
  assert.equal(changes, 0)
  // It is no body that says something, or the url is elsewhere.
  const done = { said: 'done', changes: 1 }
  assert.deepEqual(await call('', ' {} '), done)
  assert.deepEqual(await call('url=https://bots.example/', 'hello'), done)
})
