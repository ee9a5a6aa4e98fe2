import assert from 'node:assert/strict'
import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { test } from 'node:test'
import type { BotQueue } from '../../../src/bots/bot-queue.ts'
import { makeSetWebhook } from '../../../src/bot-api/set-webhook.ts'
import { read } from '../../support/bots/read-params.ts'

const setWebhook = makeSetWebhook(100)

/** Calls the method with these parameters; returns its description and how often the webhook was changed. */
async function call(query: string, unread?: string, type = 'text/plain') {
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
  const request = new IncomingMessage(new Socket())
  try {
    const body = unread === undefined ? {} : { body: unread, type }
    const params = await read({ query, ...body })
    const reply = await setWebhook({ queue, params, token: '', presence, request })
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
  for (const type of [
    'text/plain',
    'application/octet-stream',
    'application/xml',
    'application/x-json',
    'application/x-www-form-urlencoded',
    'multipart/mixed; boundary=x',
    'image/png, application/jsonn',
    '',
  ]) {
    const { changes: changed } = await call('', 'https://bots.example/hook', type)
    assert.equal(changed, 0, type)
  }
  for (const form of [
    'https://bots.example/hook?x=1',
    '{"url":"https://bots.example/?x=1"',
    'URL=https://bots.example/',
    'webhook_url=https://bots.example/',
    'url[]=https://bots.example/',
    'address=https://bots.example/',
    'secret_token=https%3A%2F%2Fbots.example',
    'params={"url":"https://bots.example/"}',
  ]) {
    assert.equal((await call(form)).changes, 0, form)
    assert.equal((await call('', form, 'application/x-www-form-urlencoded')).changes, 0, form)
  }
  assert.equal((await call('https://bots.example/hook')).changes, 0)
  const multipart = 'multipart/form-data; boundary=x'
  for (const name of ['url', 'webhook', 'a b']) {
    const part = `--x\r\nContent-Disposition: form-data; name="${name}"; filename="a"\r\n\r\nhttps://bots.example/\r\n--x--`
    assert.equal((await call('', part, multipart)).changes, 0, name)
  }
  const nested = '{"params":{"url":"https://bots.example/"}}'
  assert.equal((await call('', nested, 'application/json')).changes, 0)
  // It is no body that says something, or the url is elsewhere.
  const done = { said: 'done', changes: 1 }
  assert.deepEqual(await call('', ' {} '), done)
  for (const query of ['url=', '1699999999', '_=1699999999', 'drop_pending_updates=true'])
    assert.deepEqual(await call(query), done, query)
  assert.deepEqual(await call('url=https://bots.example/', 'hello'), done)
})
