/** The payloads of a person are erased: nobody gets them any more, and no file of the data directory has them. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { map } from '../support/server/bot-of.ts'
import { databaseWorld } from '../support/server/database.ts'
import { postbote } from '../support/programs/postbote.ts'
import { killWorker } from '../support/server/kill-worker.ts'
import { type Answer, type Server, startServer } from '../support/server/server.ts'
import { shared } from '../support/server/shared-server.ts'
import { filesWith } from '../support/kit/files-in.ts'
import { temporaryDirectory } from '../support/kit/temporary-directory.ts'
import { until } from '../support/kit/until.ts'
import { startSink } from '../support/webhook/webhook-sink.ts'

const flags = ['--local', '--retain', '1h', '--attempt-body-of-reserved']
const keeping = shared((owner) => startServer(owner, { workers: 2, flags }))
/** It keeps nothing by itself. */
const plain = shared((owner) => startServer(owner, { workers: 1, flags: ['--local'] }))
const world = databaseWorld()

/** Not compressible, so that it is in files as it is. */
function newMarker(): string {
  return randomBytes(24).toString('base64url')
}

function erase(server: Server, botId: number, key: string): Promise<Answer> {
  const path = `/v1/bots/${botId}/updates?ordering_key=${encodeURIComponent(key)}`
  return server.admin('DELETE', path)
}

async function pushTo(
  server: Server,
  botId: number,
  { marker, chat = 42, query }: { marker: string; chat?: number; query?: string },
): Promise<number> {
  const update = { message: { chat: { id: chat }, text: marker } }
  const id = await server.push(botId, update, query)
  assert(id !== undefined)
  return id
}

/** Checks that a text is in no file of the server, in no export and in no answer. */
async function assertGone(server: Server, marker: string, directory: string): Promise<void> {
  assert.deepEqual(filesWith(server.dir, marker), [])
  const file = join(directory, marker)
  const keyFile = join(server.dir, 'admin.key')
  const args = ['export', file, '--url', server.privateUrl, '--key-file', keyFile]
  const { code, output } = await postbote(args)
  assert.equal(code, 0, output)
  assert.equal(readFileSync(file).includes(marker), false)
}

/** Waits until a text is in a file of the server. A look at all of them may miss a table that a compaction writes meanwhile. */
async function isKept(server: Server, text: string): Promise<void> {
  await until(() => filesWith(server.dir, text).length > 0)
}

async function statesOf(server: Server, botId: number, query = ''): Promise<string[]> {
  const path = `/v1/bots/${botId}/updates?limit=1000${query}`
  const { text, body } = await server.admin('GET', path)
  assert(Array.isArray(body.updates), text)
  return body.updates.map(({ state }: { state: string }) => state)
}

test('what waits, what is kept and what was forgotten is erased from both queues, also from every file and export', async (t) => {
  const server = await keeping()
  const { botId, token } = await server.register()
  const marker = newMarker()
  const other = newMarker()
  const of = { marker, chat: 42 }
  await pushTo(server, botId, { marker: other, chat: 7 })
  await pushTo(server, botId, of)
  const polled = await pushTo(server, botId, of)
  await pushTo(server, botId, { marker: other, chat: 7 })
  const dropped = await pushTo(server, botId, of)
  await pushTo(server, botId, of)
  await pushTo(server, botId, { ...of, query: 'test=true' })
  await server.call(token, 'getUpdates', { offset: polled + 1 })
  await server.admin('DELETE', `/v1/bots/${botId}/updates/${dropped}`)
  await until(async () => (await statesOf(server, botId, '&state=confirmed')).length === 3)
  await isKept(server, marker)
  const { status, body } = await erase(server, botId, 'chat.id=42')
  assert.equal(status, 200)
  assert.deepEqual(body, {
    removed: { pending: 2, kept: 3, dead: 0 },
    types: [{ type: 'message', count: 5 }],
    attempts: 0,
    unreadable: 0,
    files: [],
  })
  await assertGone(server, marker, temporaryDirectory(t))
  await isKept(server, other)
  assert.deepEqual(await statesOf(server, botId), ['confirmed', 'pending'])
  assert.deepEqual(await statesOf(server, botId, '&test=true'), [])
  const shown = (await server.admin('GET', `/v1/bots/${botId}`)).body
  assert.deepEqual([shown.pending, shown.test.pending], [1, 0])
  assert.equal((await server.admin('GET', `/v1/bots/${botId}/retention`)).body.kept, 1)
  const { body: page } = await server.call(token, 'getUpdates', {})
  assert.equal(page.result.length, 1)
  assert.equal(page.result[0].message.text, other)
  const again = await erase(server, botId, 'chat.id=42')
  assert.deepEqual(again.body.removed, { pending: 0, kept: 0, dead: 0 })
  const audit = (await server.admin('GET', '/v1/audit')).body.calls[0]
  assert.deepEqual(
    [audit.operation, audit.call, audit.result],
    ['eraseUpdates', `DELETE /v1/bots/${botId}/updates`, 'ok'],
  )
  assert.equal(JSON.stringify(audit).includes('chat'), false)
})

/** All of them name person 7002, and none has their ordering key but the first. */
function updatesOf(marker: string): readonly object[] {
  const from = { id: 7002, is_bot: false, first_name: 'P' }
  const chat = { id: -100500, type: 'supergroup' }
  const someone = { id: 8, is_bot: false, first_name: 'S' }
  return [
    { message: { message_id: 1, chat: { id: 7002, type: 'private' }, text: marker } },
    { message: { message_id: 2, chat, from, text: marker } },
    { message: { message_id: 3, chat, from: someone, new_chat_members: [from], marker } },
    { callback_query: { id: '1', from, data: marker } },
    { inline_query: { id: '2', from, query: marker } },
    { pre_checkout_query: { id: '3', from, invoice_payload: marker } },
  ]
}

/** None names person 7002, although all have the digits. */
function updatesOfOthers(marker: string): readonly object[] {
  const from = { id: 70021, is_bot: false, first_name: 'Q' }
  const chat = { id: -7002, type: 'supergroup' }
  return [
    { message: { message_id: 7002, chat, from, text: `7002 ${marker}` } },
    { callback_query: { id: '7002', from, data: marker } },
  ]
}

test('a person is erased from both queues by their id: messages anywhere, presses, queries and payments, and those of others stay', async (t) => {
  const server = await keeping()
  const { botId, token } = await server.register()
  const [marker, other] = [newMarker(), newMarker()]
  const all = [...updatesOf(marker), ...updatesOfOthers(other)]
  for (const update of all) await server.push(botId, update)
  let last = 0
  for (const update of all) {
    last = (await server.push(botId, update, 'test=true')) ?? 0
  }
  await server.call(`${token}/test`, 'getUpdates', { offset: last + 1 })
  const confirmed = '&test=true&state=confirmed'
  await until(async () => (await statesOf(server, botId, confirmed)).length === all.length)
  const ofPerson = updatesOf('').length
  assert.equal((await statesOf(server, botId, '&user=7002')).length, ofPerson)
  assert.equal((await statesOf(server, botId, '&user=-7002')).length, 1)
  const { status, body } = await server.admin('DELETE', `/v1/bots/${botId}/updates?user=7002`)
  assert.equal(status, 200)
  assert.deepEqual(body.removed, { pending: ofPerson, kept: ofPerson, dead: 0 })
  assert.deepEqual(body.types, [
    { type: 'message', count: 6 },
    { type: 'callback_query', count: 2 },
    { type: 'inline_query', count: 2 },
    { type: 'pre_checkout_query', count: 2 },
  ])
  await assertGone(server, marker, temporaryDirectory(t))
  assert.deepEqual(await statesOf(server, botId), ['pending', 'pending'])
  assert.deepEqual(await statesOf(server, botId, '&test=true'), ['confirmed', 'confirmed'])
  await isKept(server, other)
})

test('dead letters and attempts of a person are erased by their id', async (t) => {
  const marker = newMarker()
  const sink = await startSink(t, ({ text }, response) => {
    response.writeHead(400, { 'Webhook-Delivery': 'abort-message' }).end(text)
  })
  const server = await keeping()
  const { botId, token } = await server.register()
  await server.call(token, 'setWebhook', { url: sink.url('/') })
  const all = updatesOf(marker)
  for (const update of all) await server.push(botId, update)
  await until(async () => (await statesOf(server, botId, '&state=dead')).length === all.length)
  const { body } = await server.admin('DELETE', `/v1/bots/${botId}/updates?user=7002`)
  assert.deepEqual(
    [body.removed, body.attempts],
    [{ pending: 0, kept: 0, dead: all.length }, all.length],
  )
  await assertGone(server, marker, temporaryDirectory(t))
})

test('what was deleted before, and copies of damaged files, are in no file after an erasure', async (t) => {
  const server = await plain()
  const { botId, token } = await server.register()
  const marker = newMarker()
  const last = await pushTo(server, botId, { marker, query: 'ordering_key=person' })
  await server.call(token, 'getUpdates', { offset: last + 1 })
  await until(async () => (await server.admin('GET', `/v1/bots/${botId}`)).body.pending === 0)
  const shard = `${map.shardOf(botId)}`
  const shards = join(server.dir, 'shards')
  mkdirSync(join(shards, shard, 'damaged', '1'), { recursive: true })
  writeFileSync(join(shards, shard, 'damaged', '1', '000003.log'), marker)
  writeFileSync(join(shards, shard, 'torn-end'), marker)
  assert.equal(filesWith(server.dir, marker).length, 3)
  const { body } = await erase(server, botId, 'person')
  assert.deepEqual(body.removed, { pending: 0, kept: 0, dead: 0 })
  assert.deepEqual(body.files.toSorted(), [`${shard}/damaged/1`, `${shard}/torn-end`])
  await assertGone(server, marker, temporaryDirectory(t))
})

test('an update in delivery ends and is not sent again; attempts, what the endpoint has answered and dead letters are erased', async (t) => {
  const marker = newMarker()
  let hanging: (() => void) | undefined
  const sink = await startSink(t, ({ text, update }, response) => {
    const what = update.message?.['what']
    const fail = (): void => void response.writeHead(500).end(`what is this: ${text}`)
    if (what === 'hang') hanging = fail
    else if (what === 'poison') {
      response.writeHead(400, { 'Webhook-Delivery': 'abort-message' }).end(text)
    } else if (what === 'fail') fail()
    else response.end()
  })
  const server = await keeping()
  const { botId, token } = await server.register()
  await server.call(token, 'setWebhook', { url: sink.url('/') })
  const push = (what: string, chat: number): Promise<number | undefined> =>
    server.push(botId, { message: { chat: { id: chat }, what, marker } })
  const attemptsOf = async (): Promise<{ update_id: number }[]> =>
    (await server.admin('GET', `/v1/bots/${botId}/attempts`)).body.attempts
  await push('poison', 42)
  await until(async () => (await statesOf(server, botId)).join() === 'dead')
  const stays = await server.push(botId, { message: { chat: { id: 7 }, what: 'fail' } })
  await until(async () => (await attemptsOf()).length >= 2)
  await push('hang', 42)
  await until(() => hanging !== undefined)
  await push('next', 42)
  const erasing = erase(server, botId, 'chat.id=42')
  await until(async () => (await server.admin('GET', `/v1/bots/${botId}`)).body.pending === 1)
  const before = sink.deliveries.filter(({ text }) => text.includes(marker)).length
  hanging?.()
  const { body } = await erasing
  assert.deepEqual(body.removed, { pending: 2, kept: 0, dead: 1 })
  assert.equal(body.attempts, 2)
  await assertGone(server, marker, temporaryDirectory(t))
  const left = new Set((await attemptsOf()).map(({ update_id: id }) => id))
  assert.deepEqual([...left], [stays])
  assert.equal(
    (await server.admin('GET', `/v1/bots/${botId}/attempts`)).text.includes(marker),
    false,
  )
  await server.push(botId, { message: { chat: { id: 42 }, what: 'later' } })
  await until(() => sink.deliveries.some(({ text }) => text.includes('later')))
  assert.equal(sink.deliveries.filter(({ text }) => text.includes(marker)).length, before)
})

test('what an endpoint repeats of a payload anywhere in its response is in no file after an erasure, also after a restart', async (t) => {
  const marker = newMarker()
  const sink = await startSink(t, ({ text }, response) => {
    response.writeHead(500, `refused ${marker}`, { 'X-Echo': marker, [`X-${marker}`]: 'x' })
    response.end(text)
  })
  const server = await startServer(t, { workers: 1, flags })
  const { botId, token } = await server.register()
  await server.call(token, 'setWebhook', { url: sink.url('/') })
  await pushTo(server, botId, { marker })
  const isFailing = async (): Promise<boolean> =>
    (await server.admin('GET', `/v1/bots/${botId}`)).body.health === 'failing'
  await until(isFailing)
  const events = join(server.dir, 'events')
  await until(() => filesWith(events, 'webhook.failing').length > 0)
  await until(async () =>
    (await server.admin('GET', `/v1/bots/${botId}/attempts`)).text.includes(marker),
  )
  const again = await server.restart()
  const { body } = await erase(again, botId, 'chat.id=42')
  assert.deepEqual(body.removed, { pending: 1, kept: 0, dead: 0 })
  await assertGone(again, marker, temporaryDirectory(t))
  const info = (await again.call(token, 'getWebhookInfo')).body.result
  assert.match(info.last_error_message, /500 Internal Server Error$/)
  const last = await again.restart()
  assert.equal((await last.admin('GET', `/v1/bots/${botId}`)).text.includes(marker), false)
  await last.stop('SIGTERM')
  assert.deepEqual(filesWith(last.dir, marker), [])
})

test('an erasure of many updates whose worker is killed is finished by a repetition, and nothing else is lost', async (t) => {
  const server = await plain()
  const { botId, token } = await server.register()
  const marker = newMarker()
  const count = 12_000
  const retention = { retain: 3_600, retain_bytes: null }
  await server.admin('PUT', `/v1/bots/${botId}/retention`, retention)
  const lines = Array.from({ length: count }, (_, n) => {
    const chat = n % 2 === 0 ? 42 : 7
    const text = chat === 42 ? marker : 'other'
    return `{"bot_id":${botId}}\n{"message":{"chat":{"id":${chat}},"text":"${text}"}}\n`
  })
  await server.admin('POST', '/v1/updates', lines.join(''))
  const first = (await server.call(token, 'getUpdates', { limit: 1 })).body.result[0].update_id
  await server.call(token, 'getUpdates', { offset: first + count / 2 })
  const erasing = erase(server, botId, 'chat.id=42').catch(() => undefined)
  await until(async () => (await server.admin('GET', `/v1/bots/${botId}`)).body.pending < count / 2)
  await killWorker(server)
  await erasing
  let status = 0
  await until(async () => {
    ;({ status } = await erase(server, botId, 'chat.id=42'))
    return status === 200
  })
  await assertGone(server, marker, temporaryDirectory(t))
  const { pending } = (await server.admin('GET', `/v1/bots/${botId}`)).body
  const { kept } = (await server.admin('GET', `/v1/bots/${botId}/retention`)).body
  assert.deepEqual([pending, kept], [count / 4, count / 4])
  await server.kill()
  assert.deepEqual(filesWith(server.dir, marker), [])
  const { code, output } = await postbote(['verify', `--dir=${server.dir}`])
  assert.equal(code, 0, output)
})

test('an erasure without a key, with an empty one, with two or with another filter is refused', async () => {
  const server = await keeping()
  const { botId } = await server.register()
  const path = `/v1/bots/${botId}/updates`
  const bad = [
    '',
    '?ordering_key=',
    '?ordering_key=a&ordering_key=b',
    '?ordering_key=a&state=pending',
    '?ordering_key=a&test=true',
    '?user=',
    '?user=0',
    '?user=+7',
    '?user=7.0',
    '?user=1e3',
    '?user=@name',
    '?user=12345678901234567890',
    '?user=7&user=8',
    '?user=7&ordering_key=a',
    '?user=7&ordering_key=',
    `?ordering_key=${'x'.repeat(1_000)}`,
  ]
  for (const query of bad) {
    const { status, body } = await server.admin('DELETE', `${path}${query}`)
    assert.deepEqual([status, body.error.code], [400, 'BAD_REQUEST'], query)
    assert.match(body.error.message, /ordering_key|state|test|user/, query)
  }
})

test('the command erases only with --yes', async () => {
  const server = await keeping()
  const { botId } = await server.register()
  await pushTo(server, botId, { marker: 'x' })
  const keyFile = join(server.dir, 'admin.key')
  const args = ['updates', 'erase', `${botId}`, '--ordering-key', 'chat.id=42']
  const at = ['--url', server.privateUrl, '--key-file', keyFile]
  const refused = await postbote([...args, ...at])
  assert.match(refused.output, /expected --yes/)
  assert.deepEqual(await statesOf(server, botId), ['pending'])
  const { code, output } = await postbote([...args, '--yes', ...at])
  assert.equal(code, 0, output)
  assert.match(output, /erased 1 pending/)
  assert.deepEqual(await statesOf(server, botId), [])
  await server.push(botId, updatesOf('x')[3] ?? {})
  await server.push(botId, updatesOfOthers('x')[0] ?? {})
  const listed = await postbote(['updates', 'list', `${botId}`, '--user=-7002', ...at])
  assert.deepEqual([listed.code, listed.output.split('pending').length], [0, 2], listed.output)
  const byUser = ['updates', 'erase', `${botId}`, '--user', '7002', '--yes', ...at]
  assert.match((await postbote(byUser)).output, /erased 1 pending[^]*of them, 1 callback_query/)
  assert.deepEqual(await statesOf(server, botId), ['pending'])
})

test('updates in PostgreSQL are erased from its tables', { skip: world.obstacle }, async (t) => {
  const database = await world.database('erase')
  const env = database.env
  const server = await startServer(t, { env, workers: 2, flags })
  const { botId, token } = await server.register()
  const marker = newMarker()
  const id = await pushTo(server, botId, { marker })
  await pushTo(server, botId, { marker })
  await server.call(token, 'getUpdates', { offset: id + 1 })
  await until(async () => (await statesOf(server, botId)).join() === 'confirmed,pending')
  const { body } = await erase(server, botId, 'm42')
  assert.deepEqual(body.removed, { pending: 1, kept: 1, dead: 0 })
  assert.deepEqual(await statesOf(server, botId), [])
  await assertGone(server, marker, temporaryDirectory(t))
  const another = newMarker()
  for (const update of updatesOf(another)) await server.push(botId, update)
  const ofUser = await server.admin('DELETE', `/v1/bots/${botId}/updates?user=7002`)
  assert.equal(ofUser.body.removed.pending, updatesOf('').length)
  await assertGone(server, another, temporaryDirectory(t))
})
