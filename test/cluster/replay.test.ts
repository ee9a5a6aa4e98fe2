/** Updates that are pushed again by a job: exactly those that were asked for, whatever becomes of the worker or of the node. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { map } from '../support/server/bot-of.ts'
import { startBalancedCluster } from '../support/server/cluster.ts'
import { databaseWorld, wait } from '../support/server/database.ts'
import { postbote } from '../support/programs/postbote.ts'
import { killWorker } from '../support/server/kill-worker.ts'
import { type RegisteredBot, type Server, startServer } from '../support/server/server.ts'
import { shared } from '../support/server/shared-server.ts'
import { temporaryDirectory } from '../support/kit/temporary-directory.ts'
import { until } from '../support/kit/until.ts'

const world = databaseWorld()
const flags = ['--local', '--retain', '1h']
const keeping = shared((owner) => startServer(owner, { workers: 2, flags }))
const keys = 7
/** A job pauses when half of a queue is full, so it lasts until its bot polls. */
const small = { all: 600, half: 300, flags: [...flags, '--max-pending-updates=600'] }

/** Pushes updates, numbered from `from` on, in their order. */
async function pushMany(
  server: Server,
  { botId }: RegisteredBot,
  { from, count }: { readonly from: number; readonly count: number },
): Promise<void> {
  const pairs = Array.from({ length: count }, (_, nth) => {
    const n = from + nth
    return `{"bot_id":${botId},"ordering_key":"${n % keys}"}\n{"message":{"message_id":${n}}}\n`
  })
  const { status, text } = await server.admin('POST', '/v1/updates', pairs.join(''))
  assert.equal(status, 200, text)
  assert(!text.includes('error'), text)
}

/** Gets and confirms what is pending. Returns the numbers. */
async function take(server: Server, { token }: RegisteredBot): Promise<number[]> {
  const taken: number[] = []
  for (let offset = 0; ; ) {
    const { body } = await server.call(token, 'getUpdates', { offset, limit: 100 })
    assert.equal(body.ok, true, JSON.stringify(body))
    const last = body.result.at(-1)
    if (last === undefined) return taken
    for (const { message } of body.result) taken.push(message.message_id)
    offset = last.update_id + 1
  }
}

async function start(server: Server, { botId }: RegisteredBot, order: object) {
  const { status, text, body } = await server.admin(
    'POST',
    `/v1/bots/${botId}/updates/replay`,
    order,
  )
  assert.equal(status, 200, text)
  return body
}

async function jobOf(server: Server, { botId }: RegisteredBot, jobId: number) {
  const { status, body } = await server.admin('GET', `/v1/bots/${botId}/replays/${jobId}`)
  return status === 200 ? body : undefined
}

/** Resolves when a job has ended. A node that has just got it may refuse calls for a moment. */
async function ended(server: Server, bot: RegisteredBot, jobId: number) {
  await until(async () => (await jobOf(server, bot, jobId))?.state === 'done')
  return jobOf(server, bot, jobId)
}

/** Resolves when a job has pushed so many updates. */
async function replayed(server: Server, bot: RegisteredBot, jobId: number, count: number) {
  await until(async () => (await jobOf(server, bot, jobId))?.replayed >= count)
}

/** Gets and confirms what waits, until a job has ended. Returns the numbers. */
async function takeAll(server: Server, bot: RegisteredBot, jobId: number): Promise<number[]> {
  const taken: number[] = []
  await until(async () => {
    const job = await jobOf(server, bot, jobId)
    // A node that has just got the shard may refuse calls for a moment.
    if (job !== undefined) taken.push(...(await take(server, bot)))
    return job?.state === 'done'
  })
  return taken
}

/** Resolves with the next full second. */
async function nextSecond(): Promise<number> {
  await wait(1_010 - (Date.now() % 1_000))
  return Math.floor(Date.now() / 1_000)
}

const numbers = (from: number, end: number): number[] =>
  Array.from({ length: end - from }, (_, n) => from + n)

test('a replay of a time is exactly what was pushed in it, beside live pushes, and a dry run has the same number', async (t) => {
  const server = await keeping()
  const bot = await server.register()
  await pushMany(server, bot, { from: 0, count: 200 })
  const since = await nextSecond()
  await pushMany(server, bot, { from: 200, count: 600 })
  const end = await nextSecond()
  await pushMany(server, bot, { from: 800, count: 200 })
  assert.deepEqual(await take(server, bot), numbers(0, 1_000))
  const order = { since, until: end, rate: 600 }
  const counted = await start(server, bot, { ...order, dry_run: true })
  assert.deepEqual([counted.count, counted.is_complete], [600, true])
  const { job_id: jobId, total } = await start(server, bot, order)
  assert.equal(total, 600)
  const seen: number[] = []
  let live = 1_000
  const startedMs = performance.now()
  while ((await jobOf(server, bot, jobId))?.state !== 'done') {
    await pushMany(server, bot, { from: live, count: 50 })
    live += 50
    seen.push(...(await take(server, bot)))
  }
  seen.push(...(await take(server, bot)))
  assert.deepEqual(
    seen.filter((n) => n < 1_000),
    numbers(200, 800),
  )
  assert.deepEqual(
    seen.filter((n) => n >= 1_000),
    numbers(1_000, live),
  )
  const livePerMs = (live - 1_000) / (performance.now() - startedMs)
  t.diagnostic(`${Math.round(livePerMs * 1_000)} live pushes a second`)
  const job = await jobOf(server, bot, jobId)
  assert.deepEqual(job.skipped, { filtered: 0, too_large: 0, gone: 0 })
})

test('a bot that has confirmed too early gets everything again, once, although workers are killed in the middle', async () => {
  const server = await keeping()
  const bot = await server.register()
  const all = 600
  await pushMany(server, bot, { from: 0, count: all })
  const { body: first } = await server.call(bot.token, 'getUpdates', { limit: 1 })
  const offset = first.result[0].update_id + all
  await server.call(bot.token, 'getUpdates', { offset })
  assert.deepEqual(await take(server, bot), [])
  const keyFile = join(server.dir, 'admin.key')
  const place = [`--url=${server.privateUrl}`, `--key-file=${keyFile}`]
  const command = (...words: string[]) => postbote([...words, ...place])
  const selected = ['--left-state=confirmed', '--rate=400']
  const begun = await command('updates', 'replay', `${bot.botId}`, '--json', ...selected)
  assert.equal(begun.code, 0, begun.output)
  const { job_id: jobId } = JSON.parse(begun.output)
  for (const part of [0.2, 0.6]) {
    await replayed(server, bot, jobId, all * part)
    for (const which of [0, 0]) await killWorker(server, which)
  }
  const job = await ended(server, bot, jobId)
  assert.equal(job?.replayed, all)
  assert.deepEqual(await take(server, bot), numbers(0, all))
  const listed = await command('replays', 'list', `${bot.botId}`, '--json')
  assert.deepEqual(JSON.parse(listed.output).replays, [job])
  const shown = await command('replays', 'show', `${bot.botId}`, `${jobId}`)
  assert.match(shown.output, /^state +done$/m)
  assert.match(shown.output, /^replayed +600$/m)
  const none = await command('updates', 'replay', `${bot.botId}`)
  assert.match(none.output, /expected an update_id, options that select updates, or --all/)
  const counted = await command('updates', 'replay', `${bot.botId}`, '--all', '--dry-run')
  assert.match(counted.output, /^1,200 updates of [\d,]+ bytes would be delivered again$/m)
})

test('a job goes on after a reload, and in the directory that an export was imported to', async (t) => {
  const { all, half } = small
  const server = await startServer(t, { workers: 2, flags: small.flags })
  const bot = await server.register()
  await pushMany(server, bot, { from: 0, count: all })
  await take(server, bot)
  const { job_id: jobId } = await start(server, bot, { rate: 1_000 })
  await replayed(server, bot, jobId, half)
  await run(['reload', `--dir=${server.dir}`])
  const directory = temporaryDirectory(t)
  const file = join(directory, 'backup')
  const keyFile = join(server.dir, 'admin.key')
  await run(['export', file, '--url', server.privateUrl, '--key-file', keyFile])
  const { state, replayed: before } = await jobOf(server, bot, jobId)
  assert.deepEqual([state, before], ['paused', half])
  const dir = join(directory, 'data')
  await run(['import', file, `--dir=${dir}`, '--shards=2'])
  await run(['verify', `--dir=${dir}`])
  const other = await startServer(t, { dir, workers: 1, flags: small.flags })
  for (const each of [server, other]) {
    assert.deepEqual(await takeAll(each, bot, jobId), numbers(0, all))
  }
})

async function run(args: readonly string[]): Promise<void> {
  const { code, output } = await postbote(args)
  assert.equal(code, 0, output)
}

test('a job goes on at the node to which its shard moves', { skip: world.obstacle }, async (t) => {
  const { all, half } = small
  const database = await world.database('replays')
  const cluster = await startBalancedCluster(t, database, { nodes: ['a', 'b'], flags: small.flags })
  const bot = await cluster.node('a').register()
  await pushMany(cluster.node('a'), bot, { from: 0, count: all })
  await take(cluster.node('a'), bot)
  const { job_id: jobId } = await start(cluster.node('a'), bot, { rate: 1_000 })
  await replayed(cluster.node('a'), bot, jobId, half)
  const owner = (await cluster.owners())[map.shardOf(bot.botId)] ?? 'a'
  const other = cluster.node(owner === 'a' ? 'b' : 'a')
  const drained = await postbote(['node', 'drain', owner], database.env)
  assert.equal(drained.code, 0, drained.output)
  cluster.forget(owner)
  const before = await jobOf(other, bot, jobId)
  assert.deepEqual([before.state, before.replayed], ['paused', half])
  assert.deepEqual(await takeAll(other, bot, jobId), numbers(0, all))
})

test('a bad order is refused by name, and jobs are started and cancelled by keys that may manage', async () => {
  const server = await keeping()
  const bot = await server.register()
  const path = `/v1/bots/${bot.botId}/updates/replay`
  const refusals: readonly [object, RegExp][] = [
    [{ state: 'pending' }, /^Bad Request: state: expected one of delivered, confirmed, dropped/],
    [{ rate: 0 }, /rate: expected a whole number from 1 to 10000, got 0/],
    [{ since: 'yesterday' }, /since: expected a whole number/],
    [{ until: -1 }, /until: expected/],
    [{ type: 'mesage' }, /type: expected one of/],
    [{ idempotency_key: '' }, /idempotency_key: expected 1 to 128 printable/],
    [{ ordering_keys: 'a' }, /"ordering_keys": expected only the fields/],
  ]
  for (const [order, expected] of refusals) {
    const { status, body } = await server.admin('POST', path, order)
    assert.equal(status, 400)
    assert.match(body.error.message, expected)
  }
  const none = await server.admin('GET', `/v1/bots/${bot.botId}/replays/1`)
  assert.deepEqual([none.status, none.body.error.code], [404, 'UNKNOWN_REPLAY'])
  await pushMany(server, bot, { from: 0, count: 10 })
  await take(server, bot)
  const { job_id: jobId } = await start(server, bot, { rate: 1 })
  const { body: made } = await server.admin('POST', '/v1/keys', { name: 'eye', scopes: ['read'] })
  const asReader = { authorization: `Bearer ${made.key}` }
  const jobs = `/v1/bots/${bot.botId}/replays`
  const cancel = `${jobs}/${jobId}/cancel`
  for (const call of [cancel, path, path.replace('/replay', '/1/replay')]) {
    const { status, body } = await server.admin('POST', call, {}, asReader)
    assert.deepEqual([status, body.error.code], [403, 'KEY_LACKS_SCOPE'], call)
  }
  const { body: shown } = await server.admin('GET', jobs, undefined, asReader)
  assert.equal(shown.replays[0].state, 'running')
  const { body: cancelled } = await server.admin('POST', cancel)
  assert.equal(cancelled.state, 'cancelled')
  const { body: audit } = await server.admin('GET', '/v1/audit?limit=20')
  const names = audit.calls.map(({ operation }: { operation: string }) => operation)
  assert(names.includes('startReplay') && names.includes('cancelReplay'), names.join(' '))
})
