/** Updates that have left a queue, seen from outside: listed, shown and removed, and complete after kill -9. */
import assert from 'node:assert/strict'
import { statfsSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { databaseWorld } from '../support/server/database.ts'
import { postbote } from '../support/programs/postbote.ts'
import { type RegisteredBot, type Server, startServer } from '../support/server/server.ts'
import { shared } from '../support/server/shared-server.ts'
import { startSink } from '../support/webhook/webhook-sink.ts'
import { temporaryDirectory } from '../support/kit/temporary-directory.ts'
import { temporaryRoot } from '../support/kit/temporary-root.ts'
import { drawnRuns } from '../support/kit/drawn-runs.ts'
import { until } from '../support/kit/until.ts'

/** The largest value of `--disk-reserve`. */
const diskReserveMibMax = 1_048_576

interface Row {
  readonly update_id: number
  readonly state: string
  readonly left: number | null
  readonly attempts: number | null
}

const keeping = shared((owner) =>
  startServer(owner, { workers: 2, flags: ['--local', '--retain', '1h'] }),
)

async function rowsOf(server: Server, { botId }: RegisteredBot, query = ''): Promise<Row[]> {
  const rows: Row[] = []
  for (let next: number | null = 0; next !== null; ) {
    const path = `/v1/bots/${botId}/updates?limit=1000&after=${next}${query}`
    const { status, text, body } = await server.admin('GET', path)
    assert.equal(status, 200, text)
    rows.push(...body.updates)
    next = body.next
  }
  return rows
}

async function statesOf(server: Server, bot: RegisteredBot, query = ''): Promise<string[]> {
  return (await rowsOf(server, bot, query)).map(({ state }) => state)
}

async function pushTo(server: Server, { botId }: RegisteredBot, query = ''): Promise<number> {
  const update = { message: { chat: { id: 42 }, text: 'hello' } }
  const id = await server.push(botId, update, query)
  assert(id !== undefined)
  return id
}

test('an update is listed while it waits and after it was confirmed, and is shown byte for byte', async () => {
  const server = await keeping()
  const bot = await server.register()
  const path = `/v1/bots/${bot.botId}/updates`
  const text = '{"message":{"name" : "\\u00fc","n":12345678901234567890}}'
  const { body: pushed } = await server.admin('POST', `${path}?ordering_key=7`, text)
  const id = pushed.update_id
  const [pending] = await rowsOf(server, bot)
  assert(pending !== undefined)
  const { accepted, ...rest } = pending as Row & { accepted: number }
  assert.deepEqual(rest, {
    update_id: id,
    type: 'message',
    ordering_key: '=7',
    state: 'pending',
    left: null,
    attempts: null,
    last_error: null,
    bytes: text.length - 2,
    subject: null,
    waits_for: null,
  })
  assert(Math.abs(accepted - Date.now() / 1000) < 60)
  const next = await pushTo(server, bot)
  await server.call(bot.token, 'getUpdates', { offset: next })
  await until(async () => (await statesOf(server, bot))[0] === 'confirmed')
  const shown = await server.admin('GET', `${path}/${id}`)
  assert.equal(shown.headers['content-type'], 'application/json')
  assert(shown.text.endsWith(`,"latest_attempts":[],"update":${text}}`), shown.text)
  assert.deepEqual([shown.body.state, shown.body.accepted], ['confirmed', accepted])
  assert(shown.body.left >= accepted)
  assert.deepEqual(await statesOf(server, bot), ['confirmed', 'pending'])
})

test('the list is filtered by state, type, time and ordering key, as pushed, as stored or by an id', async () => {
  const server = await keeping()
  const bot = await server.register()
  const message = await pushTo(server, bot)
  const own = await pushTo(server, bot, 'ordering_key=7')
  await server.push(bot.botId, { poll: { id: '1' } })
  const of = async (query: string): Promise<number[]> =>
    (await rowsOf(server, bot, `&${query}`)).map(({ update_id: id }) => id)
  for (const key of ['m42', 'chat.id%3D42']) {
    assert.deepEqual(await of(`ordering_key=${key}`), [message], key)
  }
  for (const key of ['7', '%3D7']) assert.deepEqual(await of(`ordering_key=${key}`), [own], key)
  assert.deepEqual(await of('type=message'), [message, own])
  assert.deepEqual(await of('state=confirmed'), [])
  const nowS = Math.floor(Date.now() / 1000)
  assert.equal((await of(`since=${nowS - 60}&until=${nowS + 60}`)).length, 3)
  assert.deepEqual(await of(`until=${nowS - 60}`), [])
  const pages = `/v1/bots/${bot.botId}/updates?limit=2`
  const first = await server.admin('GET', pages)
  assert.deepEqual([first.body.updates.length, first.body.next], [2, own])
  for (const bad of ['state=gone', 'type=x', 'since=yesterday', 'limit=0', 'stat=dead']) {
    const { status, body } = await server.admin('GET', `/v1/bots/${bot.botId}/updates?${bad}`)
    assert.deepEqual([status, body.error.code], [400, 'BAD_REQUEST'], bad)
  }
})

test('a pending update, a kept one and one within a run are removed, and nothing else', async () => {
  const server = await keeping()
  const bot = await server.register()
  const path = `/v1/bots/${bot.botId}/updates`
  const ids = await Promise.all(Array.from({ length: 5 }, () => pushTo(server, bot)))
  ids.sort((a, b) => a - b)
  const [first = 0, second = 0, third = 0, fourth = 0, fifth = 0] = ids
  await server.call(bot.token, 'getUpdates', { offset: fourth })
  await until(async () => (await statesOf(server, bot, '&state=confirmed')).length === 3)
  for (const id of [second, fifth]) {
    const removed = { update_id: id, removed: true }
    assert.deepEqual((await server.admin('DELETE', `${path}/${id}`)).body, removed)
  }
  const left = (await rowsOf(server, bot)).map(({ update_id: id, state }) => [id, state])
  assert.deepEqual(left, [
    [first, 'confirmed'],
    [third, 'confirmed'],
    [fourth, 'pending'],
    [fifth, 'dropped'],
  ])
  await server.admin('DELETE', `${path}/${fifth}`)
  assert.deepEqual(await statesOf(server, bot, '&state=dropped'), [])
  for (const method of ['GET', 'DELETE']) {
    const { status, body } = await server.admin(method, `${path}/${second}`)
    assert.deepEqual([status, body.error.code], [404, 'UNKNOWN_UPDATE'])
  }
  const { body: polled } = await server.call(bot.token, 'getUpdates', {})
  assert.deepEqual(
    polled.result.map(({ update_id: id }: Row) => id),
    [fourth],
  )
  const { body } = await server.admin('GET', `/v1/bots/${bot.botId}/retention`)
  assert.deepEqual([body.kept, body.in_effect.retain], [2, 3600])
})

test('after the removal of an update that always fails, its key is tried at once; one that is being delivered stays', async (t) => {
  const poison = { text: '' }
  let hanging: (() => void) | undefined
  const sink = await startSink(t, ({ update }, response) => {
    const text = update.message?.['text']
    if (text === 'hang') hanging = () => response.end()
    else response.writeHead(text === poison.text ? 500 : 200, { 'Retry-After': '3600' }).end()
  })
  const server = await keeping()
  const bot = await server.register()
  const path = `/v1/bots/${bot.botId}/updates`
  const push = (text: string): Promise<number | undefined> =>
    server.push(bot.botId, { message: { text } }, 'ordering_key=k')
  poison.text = 'poison'
  const poisonId = await push('poison')
  await push('next')
  await server.call(bot.token, 'setWebhook', { url: sink.url('/') })
  await until(async () => {
    const { body } = await server.admin('GET', `${path}/${poisonId}`)
    return body.latest_attempts.length === 1
  })
  await server.admin('DELETE', `${path}/${poisonId}`)
  await until(async () => (await statesOf(server, bot)).join() === 'dropped,delivered')
  const hangingId = await push('hang')
  await until(async () => hanging !== undefined)
  const { status, body } = await server.admin('DELETE', `${path}/${hangingId}`)
  assert.deepEqual([status, body.error.code], [409, 'UPDATE_IN_DELIVERY'])
  hanging?.()
  await until(async () => (await statesOf(server, bot, '&state=delivered')).length === 2)
  const attempts = (await rowsOf(server, bot)).map((row) => row.attempts)
  assert.deepEqual(attempts, [null, 1, 1])
})

test('thousands of updates that were polled and as many that were delivered are listed after kill -9, with state and time', async (t) => {
  const sink = await startSink(t, (_call, response) => response.end())
  const flags = ['--local', '--retain', '1h']
  let server = await startServer(t, { workers: 2, flags })
  const [polled, delivered] = [await server.register(), await server.register()]
  await server.call(delivered.token, 'setWebhook', { url: sink.url('/'), max_connections: 100 })
  const count = drawnRuns(10_000)
  const lines = Array.from({ length: count }, (_, n) =>
    [polled, delivered].map(
      ({ botId }) => `{"bot_id":${botId},"ordering_key":"${n}"}\n{"message":{"n":${n}}}\n`,
    ),
  )
  const { text } = await server.admin('POST', '/v1/updates', lines.flat().join(''))
  const ids = text
    .trim()
    .split('\n')
    .map((line): number => JSON.parse(line).update_id)
  for (let offset = 0, taken = 0; taken < count; ) {
    const { body } = await server.call(polled.token, 'getUpdates', { offset, limit: 100 })
    taken += body.result.length
    offset = body.result.at(-1).update_id + 1
    if (taken === count) await server.call(polled.token, 'getUpdates', { offset })
  }
  await until(
    async () => (await server.admin('GET', `/v1/bots/${delivered.botId}`)).body.pending === 0,
    60_000,
  )
  // What is not waited for is written within 20 ms.
  await new Promise((resolve) => setTimeout(resolve, 300))
  await server.kill()
  server = await server.restart()
  for (const [nth, bot, state] of [
    [0, polled, 'confirmed'],
    [1, delivered, 'delivered'],
  ] as const) {
    const rows = await rowsOf(server, bot)
    assert.deepEqual(
      rows.map(({ update_id: id }) => id),
      ids.filter((_id, index) => index % 2 === nth),
    )
    assert(rows.every((row) => row.state === state && (row.left ?? 0) > 1e9))
  }
})

test('while little more than the reserve of the disk is free, what is kept goes, and no push is refused', async (t) => {
  const { bavail, bsize } = statfsSync(temporaryRoot)
  const reserveMib = Math.floor((bavail * bsize) / 1.5 / 2 ** 20)
  if (reserveMib > diskReserveMibMax) return t.skip('the disk is larger than any reserve')
  const flags = ['--retain=1h', `--disk-reserve=${reserveMib}`]
  const server = await startServer(t, { flags })
  const bot = await server.register()
  await pushTo(server, bot)
  const last = await pushTo(server, bot)
  await server.call(bot.token, 'getUpdates', { offset: last })
  await until(async () => (await statesOf(server, bot)).join() === 'pending')
  await pushTo(server, bot)
})

const world = databaseWorld()

async function run(...args: Parameters<typeof postbote>): Promise<void> {
  const { code, output } = await postbote(...args)
  assert.equal(code, 0, output)
}

test('what is kept is the same after a reload, in an export, in a directory with other shards and in PostgreSQL', {
  skip: world.obstacle,
}, async (t) => {
  const source = await keeping()
  const bot = await source.register()
  const ids = await Promise.all(Array.from({ length: 3 }, () => pushTo(source, bot)))
  const [first = 0, second = 0, third = 0] = ids.toSorted((a, b) => a - b)
  await source.call(bot.token, 'getUpdates', { offset: second })
  await source.admin('DELETE', `/v1/bots/${bot.botId}/updates/${second}`)
  const rows = await rowsOf(source, bot)
  assert.deepEqual(
    rows.map(({ update_id: id, state }) => [id, state]),
    [
      [first, 'confirmed'],
      [second, 'dropped'],
      [third, 'pending'],
    ],
  )
  await run(['reload', `--dir=${source.dir}`])
  assert.deepEqual(await rowsOf(source, bot), rows)
  const directory = temporaryDirectory(t)
  const file = join(directory, 'backup')
  const keyFile = join(source.dir, 'admin.key')
  await run(['export', file, '--url', source.privateUrl, '--key-file', keyFile])
  const dir = join(directory, 'data')
  await run(['import', file, `--dir=${dir}`, '--shards=2'])
  await run(['verify', `--dir=${dir}`])
  const database = await world.database('kept')
  await run(['import', file], database.env)
  const flags = ['--retain', '1h']
  for (const options of [{ dir }, { env: database.env }]) {
    const server = await startServer(t, { ...options, workers: 2, flags })
    assert.deepEqual(await rowsOf(server, bot), rows)
    const retention = await server.admin('GET', `/v1/bots/${bot.botId}/retention`)
    assert.equal(retention.body.kept, 2)
    await server.call(bot.token, 'getUpdates', { offset: third + 1 })
    await until(async () => (await statesOf(server, bot)).join() === 'confirmed,dropped,confirmed')
    await server.admin('DELETE', `/v1/bots/${bot.botId}`)
  }
})
