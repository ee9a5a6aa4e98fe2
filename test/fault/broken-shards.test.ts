import assert from 'node:assert/strict'
import {
  cpSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { randomBytes } from 'node:crypto'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { systemClock } from '../../src/kit/clock.ts'
import { ShardMap } from '../../src/process/shard-map.ts'
import { shardPath } from '../../src/shard/data-directory.ts'
import { kinds } from '../../src/shard/kinds.ts'
import { LevelStore } from '../../src/store/level/level-store.ts'
import { addTables, tablesOf, zeroSector } from '../support/store/damaged-tables.ts'
import { type RegisteredBot, type Server, send, startServer } from '../support/server/server.ts'
import { startSink } from '../support/webhook/webhook-sink.ts'
import { TailReader } from '../support/producers/tail-reader.ts'
import { until } from '../support/kit/until.ts'
import { SimulatedDisk } from './power/simulated-disk.ts'
import { postbote } from '../support/programs/postbote.ts'

const shards = 4
const map = new ShardMap({ shards, workers: 2 })
const flags = ['--shards', `${shards}`, '--local']

function botOfShard(shard: number, from = 100): number {
  for (let botId = from; ; botId++) if (map.shardOf(botId) === shard) return botId
}

/** Registers one bot in each shard and pushes one update to each. */
async function registerAll(server: Server): Promise<RegisteredBot[]> {
  const bots: RegisteredBot[] = []
  for (let shard = 0; shard < shards; shard++) {
    const bot = await server.register(botOfShard(shard))
    await server.push(bot.botId, { message: { text: 'first' } })
    bots.push(bot)
  }
  return bots
}

function text(of: { readonly body: { readonly result: { message: { text: string } }[] } }): string {
  return of.body.result.map(({ message }) => message.text).join()
}

async function assertServed(server: Server, { botId, token }: RegisteredBot): Promise<void> {
  await server.push(botId, { message: { text: 'later' } })
  assert.match(text(await server.call(token, 'getUpdates')), /later/)
}

function deathsIn(output: string): string[] {
  return output.match(/worker was ended by \w+/g) ?? []
}

async function readiness(server: Server) {
  const { status, body } = await send({ method: 'GET', url: `${server.privateUrl}/readyz` })
  return { status, body }
}

/** Asserts that the bots of the first three shards are refused and the bot of the last one is served. */
async function assertRefusedAlone(damaged: Server, bots: readonly RegisteredBot[]): Promise<void> {
  const [lost, , , served] = bots
  assert(lost !== undefined && served !== undefined)
  await assertServed(damaged, served)
  const poll = await damaged.call(lost.token, 'getUpdates', { timeout: 20 })
  assert.equal(poll.status, 503)
  assert.equal(poll.headers['retry-after'], '60')
  assert.match(poll.body.description, /cannot be served at the moment/)
  const push = await damaged.admin('POST', `/v1/bots/${lost.botId}/updates`, { message: {} })
  assert.deepEqual([push.status, push.body.error.code], [503, 'STORE_UNAVAILABLE'])
  assert.equal(push.headers['retry-after'], '1')
  const report = await damaged.admin('GET', `/v1/bots/${lost.botId}`)
  assert.deepEqual([report.status, report.body.error.code], [503, 'SHARD_BROKEN'])
  const names = { first_name: 'A', username: 'a_bot' }
  // Some of these calls are for a bot of the other worker, which then responds.
  for (const { botId } of bots.slice(0, 3)) {
    const registration = await damaged.admin('POST', '/v1/bots', { bot_id: botId, ...names })
    assert.deepEqual([registration.status, registration.headers['retry-after']], [503, '60'])
  }
  // Without an id, the bot gets one in a shard that is served, whichever worker handles the request.
  for (let times = 0; times < 4; times++) await damaged.register()
  const listed = await damaged.admin('GET', '/v1/bots')
  assert.deepEqual(listed.body.missing_shards, [0, 1, 2])
  const sorted = await damaged.admin('GET', '/v1/bots?sort=pending')
  assert.deepEqual(sorted.body.missing_shards, [0, 1, 2])
  const summary = await damaged.admin('GET', '/v1/summary')
  assert.deepEqual(summary.body.missing_shards, [0, 1, 2])
  assert.equal(summary.body.shards, 4)
  assert(listed.body.bots.some((bot: { bot_id: number }) => bot.bot_id === served.botId))
  const stream = bots
    .map(({ botId }) => `{"bot_id":${botId}}\n{"message":{"text":"streamed"}}\n`)
    .join('')
  const results = (await damaged.admin('POST', '/v1/updates', stream)).text.trim().split('\n')
  assert.deepEqual(
    results.map((line) => JSON.parse(line).error?.code ?? 'stored'),
    ['STORE_UNAVAILABLE', 'STORE_UNAVAILABLE', 'STORE_UNAVAILABLE', 'stored'],
  )
}

test('directories of shards that were exchanged, and an old copy over newer files, are set aside and named, and lose nothing', async (t) => {
  const first = await startServer(t, { workers: 2, flags })
  const bots = await registerAll(first)
  await first.stop()
  const { dir } = first
  const [zero, one, two, old] = [
    shardPath(dir, 0),
    shardPath(dir, 1),
    shardPath(dir, 2),
    join(dir, 'old'),
  ]
  cpSync(two, old, { recursive: true })
  const second = await startServer(t, { dir, workers: 2, flags })
  for (const bot of bots) await assertServed(second, bot)
  await second.stop()
  const exchange = (): void => {
    renameSync(zero, join(dir, 'moved'))
    renameSync(one, zero)
    renameSync(join(dir, 'moved'), one)
  }
  exchange()
  cpSync(two, join(dir, 'new'), { recursive: true })
  cpSync(old, two, { recursive: true })

  const verified = await foundBy('verify', dir)
  assert.match(
    verified,
    /shards\/0: registration of bot \d+ belongs to shard 1: these are files of/,
  )
  assert.match(
    verified,
    /shards\/2\/MANIFEST-\d+, byte 0: CURRENT names MANIFEST-\d+, but the files/,
  )
  assert.match(
    await foundBy('repair', dir, '--shard=1'),
    /shards\/1: .* belongs to shard 0.*\n.*unchanged/,
  )
  const third = await startServer(t, { dir, workers: 2, flags })
  await assertRefusedAlone(third, bots)
  const { body } = await readiness(third)
  assert.match(body.broken_shards[1].reason, /belongs to shard 0: these are files of another/)
  await third.stop()

  exchange()
  rmSync(two, { recursive: true })
  renameSync(join(dir, 'new'), two)
  const last = await startServer(t, { dir, workers: 2, flags })
  await until(async () => (await readiness(last)).body.broken_shards === undefined, 30_000)
  for (const bot of bots) await assertServed(last, bot)
})

async function foundBy(command: string, dir: string, ...args: readonly string[]): Promise<string> {
  const { code, out, err } = await postbote([command, `--dir=${dir}`, ...args])
  assert.equal(code, 1)
  return out + err
}

test('shards whose CURRENT, MANIFEST or table is damaged are set aside at the start, and all others are served', async (t) => {
  const first = await startServer(t, { workers: 2, flags })
  const bots = await registerAll(first)
  await first.stop()
  const { dir } = first
  for (let shard = 0; shard < shards; shard++) await addTables(dir, shard)
  cpSync(join(dir, 'shards'), join(dir, 'copy'), { recursive: true })
  rmSync(join(shardPath(dir, 0), 'CURRENT'))
  const manifest = readFileSync(join(shardPath(dir, 1), 'CURRENT'), 'latin1').trim()
  const list = readFileSync(join(shardPath(dir, 1), manifest))
  list.fill(0xff, 10, 20)
  writeFileSync(join(shardPath(dir, 1), manifest), list)
  const [table = ''] = tablesOf(dir, 2)
  rmSync(table)

  const damaged = await first.restart()
  const { status, body } = await readiness(damaged)
  assert.equal(status, 200)
  assert.equal(body.status, 'ready')
  const broken: { shard: number; file: string; reason: string }[] = body.broken_shards
  assert.deepEqual(
    broken.map(({ shard }) => shard),
    [0, 1, 2],
  )
  assert.match(broken[0]?.file ?? '', /^shards\/0\/CURRENT$/)
  assert.match(broken[1]?.file ?? '', /^shards\/1\/MANIFEST-/)
  assert.match(broken[2]?.file ?? '', /^shards\/2(?:\/\d+\.ldb)?$/)
  assert.match(damaged.output(), /a shard is set aside because its files are damaged/)
  const metrics = await damaged.admin('GET', '/metrics')
  assert.match(metrics.text, /postbote_shards_broken 3/)
  const events = await TailReader.open(damaged, '/v1/events?after=0&type=shard.broken')
  await events.atLeast(3)
  events.close()
  const reported = events.events.map(({ data }) => data)
  assert.deepEqual(
    reported.map(({ shard }) => shard).toSorted((a, b) => a - b),
    [0, 1, 2],
  )
  assert(reported.every((event) => event.reason !== '' && event.text.includes('is set aside')))
  assert.deepEqual(deathsIn(damaged.output()), [])

  await assertRefusedAlone(damaged, bots)

  const sound = await damaged.admin('POST', '/v1/shards/3/check')
  assert.equal(sound.body.damages_found, 0, sound.text)
  assert(sound.body.files > 0)
  const missing = await damaged.admin('POST', '/v1/shards/2/check')
  assert.equal(missing.body.damages[0].file, table.slice(dir.length + 1))
  for (const unknown of ['4', '-1', 'x', '0x1']) {
    assert.equal((await damaged.admin('POST', `/v1/shards/${unknown}/check`)).status, 400)
  }

  for (const shard of [0, 1, 2]) {
    rmSync(shardPath(dir, shard), { recursive: true })
    renameSync(join(dir, 'copy', `${shard}`), shardPath(dir, shard))
  }
  process.kill(damaged.primaryPid, 'SIGHUP')
  await until(async () => (await readiness(damaged)).body.broken_shards === undefined, 30_000)
  for (const bot of bots) await assertServed(damaged, bot)
})

test('damaged tables end no worker at a start, and a shard is served again when its tables are back, without a restart', async (t) => {
  let isTaking = false
  const sink = await startSink(t, (_delivery, response) => {
    response.statusCode = isTaking ? 200 : 500
    response.end()
  })
  const first = await startServer(t, { workers: 2, flags })
  const bots = await registerAll(first)
  const [neighbor, , mapped, silent] = bots
  assert(neighbor !== undefined && mapped !== undefined && silent !== undefined)
  await first.call(silent.token, 'setWebhook', { url: sink.url('/silent') })
  await sink.atLeast(1)
  const many = Array.from(
    { length: 1_500 },
    (_, n) => `{"bot_id":${mapped.botId}}\n{"message":{"text":"${'a'.repeat(1_000)}${n}"}}\n`,
  )
  await first.admin('POST', '/v1/updates', many.join(''))
  await first.stop()
  isTaking = true
  const failed = sink.deliveries.length
  const { dir } = first
  // One of four tables of level 0 has lost a sector. LevelDB compacts these tables when it opens them.
  await addTables(dir, 1, { botId: botOfShard(1, 9_000), count: 2, leavesLog: true })
  zeroSector(tablesOf(dir, 1)[1] ?? '')
  await addTables(dir, 0, { botId: botOfShard(0, 9_000), count: 1 })
  // The other shard of that worker is intact so far. A table of another worker's shard is unreadable for a while.
  await addTables(dir, 3)
  const [unreadable = ''] = tablesOf(dir, 3)
  const sound = readFileSync(unreadable)
  writeFileSync(unreadable, Buffer.alloc(sound.length))
  await addTables(dir, 2)

  const server = await first.restart()
  await until(async () => (await readiness(server)).body.broken_shards !== undefined, 30_000)
  const [broken] = (await readiness(server)).body.broken_shards
  assert.equal(broken.shard, 1)
  assert.match(broken.file, /^shards\/1\/\d+\.ldb$/)
  assert.equal(typeof broken.offset, 'number')
  await assertServed(server, neighbor)
  assert.deepEqual(deathsIn(server.output()), [])

  await until(async () => isNamed((await readiness(server)).body.broken_shards, 3), 30_000)
  assert.equal(sink.deliveries.length, failed)
  writeFileSync(unreadable, sound)
  await until(() => sink.deliveries.length > failed, 30_000)
  await until(async () => !isNamed((await readiness(server)).body.broken_shards, 3), 30_000)

  // Reading past the end of a mapped file ends a process by SIGBUS, just like reading a bad sector in it.
  const poll = await server.call(mapped.token, 'getUpdates', { limit: 1 })
  const mappedTables = tablesOf(dir, 2).map((path) => ({ path, bytes: readFileSync(path) }))
  for (const { path } of mappedTables) truncateSync(path, 100_000)
  const offset = poll.body.result[0].update_id + 1_000
  await server.call(mapped.token, 'getUpdates', { offset }).catch(() => undefined)
  await until(async () => (await readiness(server)).body.broken_shards.length > 1, 30_000)
  await until(async () => (await readiness(server)).body.checking_shards === undefined, 30_000)
  const { body } = await readiness(server)
  assert.deepEqual(
    body.broken_shards.map((each: { shard: number }) => each.shard),
    [1, 2],
  )
  await server.push(silent.botId, { message: { text: 'still here' } })
  await until(() => sink.deliveries.at(-1)?.text.includes('still here') === true, 30_000)
  assert.deepEqual(deathsIn(server.output()), ['worker was ended by SIGBUS'])
  for (const { path, bytes } of mappedTables) writeFileSync(path, bytes)
  await until(async () => !isNamed((await readiness(server)).body.broken_shards, 2), 30_000)
  assert.equal((await server.call(mapped.token, 'getUpdates', { offset })).status, 200)

  // After an unclean end, too, no damaged table is opened.
  await server.kill()
  const lost = tablesOf(dir, 0).at(-1) ?? ''
  zeroSector(lost)
  const again = await server.restart()
  const after = (await readiness(again)).body
  assert.deepEqual(
    after.broken_shards.map((each: { shard: number; file: string }) => each.shard),
    [0, 1],
  )
  assert.equal(after.broken_shards[0].file, lost.slice(dir.length + 1))
  await again.push(mapped.botId, { message: { text: 'later' } })
  assert.deepEqual(deathsIn(again.output()), [])
})

test('a shard whose table is damaged while it is served is closed before LevelDB rewrites the table, named, and served again when that is mended', async (t) => {
  const first = await startServer(t, { workers: 1, flags })
  const [other, bot] = await registerAll(first)
  assert(other !== undefined && bot !== undefined)
  await first.stop()
  await addTables(first.dir, 1, { botId: botOfShard(1, 9_000), count: 1 })
  const server = await first.restart()
  const table = tablesOf(first.dir, 1).at(-1) ?? ''
  const before = await server.admin('GET', '/metrics')
  assert.match(before.text, /postbote_file_damages_found_total 0/)
  const sound = readFileSync(table)
  zeroSector(table)
  const checked = await server.admin('POST', '/v1/shards/1/check')
  assert(checked.body.damages_found > 0)
  await until(async () => isNamed((await readiness(server)).body.broken_shards, 1))
  assert(isNamed((await readiness(server)).body.damaged_files, 1))
  const poll = await server.call(bot.token, 'getUpdates', { offset: 1 })
  assert.equal(poll.status, 503)
  await assertServed(server, other)
  const events = await TailReader.open(server, '/v1/events?after=0')
  await until(() => events.events.some(({ data }) => data.type === 'shard.broken'))
  events.close()
  const reported = events.events.filter(({ data }) => data.type.startsWith('shard.'))
  assert.deepEqual(
    reported.map(({ data }) => data.type),
    ['shard.damaged', 'shard.poisoned', 'shard.broken'],
  )
  assert.match(reported[0]?.data.text, /Files of shard 1 are damaged: shards\/1\/\d+.ldb, byte/)
  assert.match((await server.admin('GET', '/metrics')).text, /postbote_file_damages_found_total 1/)
  assert.match(server.output(), /files of this shard are damaged/)

  writeFileSync(table, sound)
  await until(async () => (await readiness(server)).body.broken_shards === undefined)
  await assertServed(server, bot)
  await until(async () => (await readiness(server)).body.damaged_files === undefined)
  assert.deepEqual(deathsIn(server.output()), [])
})

test('a record that is found damaged has the files of its shard checked at once, before a compaction hides more', async (t) => {
  const first = await startServer(t, { workers: 1, flags })
  const { botId, token } = await first.register(botOfShard(1))
  const marker = randomBytes(100).toString('base64url')
  await first.push(botId, { message: { text: marker } })
  // Its log becomes a table.
  await (await first.restart()).stop()
  const server = await first.restart()
  const [table = ''] = tablesOf(first.dir, 1)
  const bytes = readFileSync(table)
  const at = bytes.indexOf(marker)
  assert(at > 0)
  bytes[at] = (bytes[at] ?? 0) ^ 1
  writeFileSync(table, bytes)
  const { body } = await server.call(token, 'getUpdates')
  assert.deepEqual(body.result, [])
  await until(async () => isNamed((await readiness(server)).body.broken_shards, 1))
  assert.match(server.output(), /has met damage; its files are being checked/)
  const { body: ready } = await readiness(server)
  assert(JSON.stringify(ready.damaged_files).includes('checksum mismatch'))
})

test('updates that a queue has lost without a trace are named when it is read', async (t) => {
  const first = await startServer(t, { workers: 1, flags })
  const { botId, token } = await first.register(botOfShard(1))
  const ids: number[] = []
  for (let nth = 0; nth < 5; nth++) {
    ids.push((await first.push(botId, { message: { text: `${nth}` } })) ?? 0)
  }
  await first.stop()
  const store = new LevelStore({
    directory: shardPath(first.dir, 1),
    clock: systemClock,
    lockWaitMs: 0,
  })
  await store.open()
  const lost = ids
    .slice(1, 3)
    .map((id) => ({ type: 'del' as const, key: kinds.update.key(botId, id) }))
  await store.write(lost, { sync: true })
  await store.close()
  const server = await first.restart()
  const { body } = await server.call(token, 'getUpdates')
  assert.equal(body.result.length, 3)
  const named = async (): Promise<{ shard: number; reason: string }[] | undefined> =>
    (await readiness(server)).body.damaged_files
  await until(async () => (await named()) !== undefined)
  assert.deepEqual(
    (await named())?.map(({ shard, reason }) => [shard, reason]),
    [[1, `2 updates of bot ${botId} cannot be found or read`]],
  )
})

test('if writes fail while a worker opens its shards, none of them is set aside', async (t) => {
  const place = mkdtempSync(join(tmpdir(), 'postbote-disk-'))
  const disk = new SimulatedDisk(place)
  const server = await startServer(t, { workers: 1, flags, env: disk.env, dir: disk.root })
  // After the server has ended.
  t.after(() => rmSync(place, { recursive: true, force: true }))
  const bots = await registerAll(server)
  disk.fail('write')
  const worker = server.workerPid()
  process.kill(worker, 'SIGKILL')
  // LevelDB writes its logs into tables when it opens a shard.
  await until(() => /worker could not be restarted|is set aside/.test(server.output()))
  disk.fail('none')
  await until(async () => (await readiness(server)).status === 200)
  assert.doesNotMatch(server.output(), /is set aside/)
  for (const bot of bots) await assertServed(server, bot)
})

test('shards for which the disk has no room are set aside and named, also by the next process, and served when there is room', async (t) => {
  const place = mkdtempSync(join(tmpdir(), 'postbote-disk-'))
  const disk = new SimulatedDisk(place)
  const server = await startServer(t, { workers: 2, flags, env: disk.env, dir: disk.root })
  t.after(() => rmSync(place, { recursive: true, force: true }))
  const bots = await registerAll(server)
  const ofFirstWorker = shards / 2
  disk.fail('full')
  for (const deaths of [1, 2]) {
    // The second time it is the younger one.
    process.kill(server.workerPid(deaths - 1), 'SIGKILL')
    const aside = (): number =>
      server.output().match(/disk has no room to open it, and/g)?.length ?? 0
    await until(() => aside() === deaths * ofFirstWorker)
    await until(async () => (await readiness(server)).status === 200)
    for (const [shard, { token }] of bots.entries()) {
      const { status } = await server.call(token, 'getMe')
      assert.equal(status, shard < ofFirstWorker ? 503 : 200)
    }
  }
  disk.fail('none')
  // A write of a shard that was open may have failed, too.
  await until(async () => {
    const { body } = await readiness(server)
    return body.broken_shards === undefined && body.poisoned_shards === undefined
  })
  for (const { token } of bots) {
    await until(async () => (await server.call(token, 'getMe')).status === 200)
  }
  for (const bot of bots) await assertServed(server, bot)
})

function isNamed(
  troubles: readonly { readonly shard: number }[] | undefined,
  shard: number,
): boolean {
  return troubles?.some((each) => each.shard === shard) === true
}
