/** `postbote export` and `import`: a copy of servers under load, in another number of shards and in other stores. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { createServer, type RequestListener, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { SectionCheck } from '../../src/features/backup/backup-check.ts'
import { BackupError, BackupFrames } from '../../src/features/backup/backup-frame.ts'
import { onlyWithAll } from '../support/kit/drawn-runs.ts'
import { SmallDisk, smallDiskObstacle } from '../support/kit/small-disk.ts'
import { temporaryDirectory } from '../support/kit/temporary-directory.ts'
import { until } from '../support/kit/until.ts'
import { postbote } from '../support/programs/postbote.ts'
import type { CommandEnd } from '../support/programs/run-in-process.ts'
import { startBalancedCluster } from '../support/server/cluster.ts'
import { botsOfAllShards, databaseWorld, wait } from '../support/server/database.ts'
import {
  type EndingTest,
  type RegisteredBot,
  type Server,
  startServer,
} from '../support/server/server.ts'
import { sectionBytes, sectionsOf } from '../support/store/small-backup.ts'

const mainFile = fileURLToPath(new URL('../../src/main.js', import.meta.url))
const world = databaseWorld()
const skip = world.obstacle
/** Of each bot, before an export and after it. */
const pushesAround = 20
/** Between two pushes to a bot: enough CPU is left for what the load is about. */
const pauseMs = 40

/** Pushes to all bots of a server, one after the other for each bot, and remembers what was acknowledged. */
class PushLoad {
  readonly bots: readonly RegisteredBot[]
  /** By the ids of bots: the numbers of acknowledged updates, by their ids. */
  readonly acknowledged = new Map<number, Map<number, number>>()
  readonly latenciesMs: number[] = []
  readonly #running: Promise<unknown>
  #isOver = false
  #number = 0

  constructor(t: EndingTest, bots: readonly RegisteredBot[], server: () => Server) {
    this.bots = bots
    for (const { botId } of bots) this.acknowledged.set(botId, new Map())
    this.#running = Promise.all(bots.map(({ botId }) => this.#push(botId, server)))
    t.after(() => this.end())
  }

  /** Resolves when each bot has so many more. */
  async more(count: number): Promise<void> {
    const sizes = [...this.acknowledged.values()].map(({ size }) => size + count)
    await until(
      () => [...this.acknowledged.values()].every(({ size }, nth) => size >= (sizes[nth] ?? 0)),
      60_000,
    )
  }

  /** What is acknowledged by now. */
  copy(): ReadonlyMap<number, ReadonlyMap<number, number>> {
    return new Map([...this.acknowledged].map(([botId, ids]) => [botId, new Map(ids)]))
  }

  async end(): Promise<void> {
    this.#isOver = true
    await this.#running
  }

  async #push(botId: number, server: () => Server): Promise<void> {
    while (!this.#isOver) {
      const number = this.#number++
      const beganMs = performance.now()
      const id = await server().push(botId, { message: { number } })
      this.latenciesMs.push(performance.now() - beganMs)
      assert(id !== undefined)
      this.acknowledged.get(botId)?.set(id, number)
      await wait(pauseMs)
    }
  }
}

interface ReceivedUpdate {
  readonly update_id: number
  readonly message: { readonly number: number }
}

async function pendingOf(server: Server, { token }: RegisteredBot): Promise<ReceivedUpdate[]> {
  const all: ReceivedUpdate[] = []
  for (let offset = 0; ; ) {
    const { status, body, text } = await server.call(token, 'getUpdates', { offset, limit: 100 })
    assert.equal(status, 200, text)
    const updates: ReceivedUpdate[] = body.result
    const last = updates.at(-1)
    if (last === undefined) return all
    all.push(...updates)
    offset = last.update_id + 1
  }
}

function remote(server: Server, t: EndingTest): readonly string[] {
  const keyFile = join(temporaryDirectory(t), 'key')
  writeFileSync(keyFile, server.key, { mode: 0o600 })
  return ['--url', server.privateUrl, '--key-file', keyFile]
}

async function done(command: Promise<CommandEnd>): Promise<string> {
  const { code, output } = await command
  assert.equal(code, 0, output)
  return output
}

/** Exports a server under load: returns the file, and what had been acknowledged before the export began. */
async function exported(t: TestContext, load: PushLoad, server: Server) {
  await load.more(pushesAround)
  const file = join(temporaryDirectory(t), 'backup')
  const before = load.copy()
  load.latenciesMs.length = 0
  const output = await done(postbote(['export', file, ...remote(server, t)]))
  t.diagnostic(`${output.trim().split('\n').at(-1)}; pushes meanwhile: ${medianText(load)}`)
  load.latenciesMs.length = 0
  await load.more(pushesAround)
  t.diagnostic(`pushes after it: ${medianText(load)}`)
  return { file, before }
}

function medianText({ latenciesMs }: PushLoad): string {
  const sorted = latenciesMs.toSorted((a, b) => a - b)
  const at = (share: number): string => (sorted[Math.floor(sorted.length * share)] ?? 0).toFixed(1)
  return `${sorted.length}, median ${at(0.5)} ms, p99 ${at(0.99)} ms`
}

/**
 * Asserts that an imported server has everything that was acknowledged before the export began, nothing that differs from
 * what the source acknowledged, and that it gives no id that the source has given at any time.
 */
async function checkImport(
  server: Server,
  load: PushLoad,
  before: ReadonlyMap<number, ReadonlyMap<number, number>>,
): Promise<void> {
  for (const bot of load.bots) {
    const given = load.acknowledged.get(bot.botId)
    assert(given !== undefined)
    const fresh: number[] = []
    for (let nth = 0; nth < 3; nth++) {
      const id = await server.push(bot.botId, { message: { number: -1 } })
      assert(id !== undefined && !given.has(id), `id ${id} was given twice`)
      assert(id > Math.max(...given.keys()), `id ${id} is not above all ids of the source`)
      fresh.push(id)
    }
    const pending = await pendingOf(server, bot)
    const ids = pending.map((update) => update.update_id)
    assert.deepEqual(ids.slice(-3), fresh)
    assert.deepEqual(
      ids,
      [...new Set(ids)].toSorted((a, b) => a - b),
    )
    const found = new Map(pending.map((update) => [update.update_id, update.message.number]))
    for (const [id, number] of before.get(bot.botId) ?? []) {
      assert.equal(found.get(id), number, `update ${id} of bot ${bot.botId}`)
    }
    for (const { update_id: id, message } of pending.slice(0, -3)) {
      assert.equal(given.get(id), message.number, `update ${id} of bot ${bot.botId}`)
    }
  }
}

test('an export of a server under load has everything acknowledged before, and no id is given twice after an import', async (t) => {
  const source = await startServer(t, { flags: ['--shards=4'] })
  const bots = await botsOfAllShards(source)
  const [first, second, idle] = [bots[0], bots[1], await source.register()]
  assert(first !== undefined && second !== undefined)
  const keyed = async (server: Server): Promise<{ update_id: number; duplicate?: boolean }> => {
    const path = `/v1/bots/${first.botId}/updates?test=true`
    const headers = { 'idempotency-key': 'the-key' }
    const { status, text, body } = await server.admin('POST', path, { message: { n: 1 } }, headers)
    assert.equal(status, 200, text)
    return body
  }
  const { update_id: keyedId } = await keyed(source)
  const load = new PushLoad(t, bots, () => source)
  const { file, before } = await exported(t, load, source)
  // The source goes on: it begins the numbering of a queue that had none when the export began.
  const idleId = await source.push(idle.botId, { message: {} })
  await load.end()
  assert.equal(statSync(file).mode & 0o777, 0o600)
  assert.deepEqual(readdirSync(join(file, '..')), ['backup'])

  const dir = join(temporaryDirectory(t), 'data')
  const output = await done(postbote(['import', file, `--dir=${dir}`, '--shards=8', '--json']))
  const { shards, target, records } = JSON.parse(output.trim().split('\n').at(-1) ?? '')
  assert.deepEqual([shards, target, records > 8 * pushesAround], [8, dir, true])
  const server = await startServer(t, { dir })
  await checkImport(server, load, before)
  assert.deepEqual(await keyed(server), { update_id: keyedId, duplicate: true })
  const freshIdleId = await server.push(idle.botId, { message: {} })
  assert(freshIdleId !== undefined && idleId !== undefined && freshIdleId > idleId)
  await server.stop()
  const { code, output: verified } = await postbote(['verify', `--dir=${dir}`])
  assert.deepEqual([code, /no damage/.test(verified)], [0, true], verified)
})

test('a server moves into a database and back, under load, with other numbers of shards', {
  skip:
    skip ||
    onlyWithAll(
      'database-commands.test.ts moves into databases and back, and others here export under load',
    ),
}, async (t) => {
  const source = await startServer(t, { flags: ['--shards=4'] })
  const load = new PushLoad(t, await botsOfAllShards(source), () => source)
  const { file, before } = await exported(t, load, source)
  await load.end()
  const database = await world.database('moved', 16)
  await done(postbote(['import', file], database.env))
  const again = await postbote(['import', file], database.env)
  assert.deepEqual([again.code, /moved is not empty/.test(again.output)], [1, true], again.output)
  const other = await postbote(['import', file, '--shards=8'], database.env)
  assert.deepEqual([other.code, /--shards 8: expected 16/.test(other.output)], [2, true])

  const cluster = await startBalancedCluster(t, database, { nodes: ['a', 'b'] })
  await checkImport(cluster.any(), load, before)
  const onCluster = new PushLoad(t, load.bots, () => cluster.any())
  const back = await exported(t, onCluster, cluster.node('b'))
  await onCluster.end()
  const dir = join(temporaryDirectory(t), 'data')
  await done(postbote(['import', back.file, `--dir=${dir}`, '--shards=2']))
  await checkImport(await startServer(t, { dir }), onCluster, back.before)
})

test('an export survives reloads of its server', async (t) => {
  const source = await startServer(t, { flags: ['--shards=4'] })
  const load = new PushLoad(t, await botsOfAllShards(source), () => source)
  await load.more(pushesAround)
  const [{ botId } = { botId: 0 }] = load.bots
  const text = 'x'.repeat(400_000)
  for (let nth = 0; nth < 60; nth++) await source.push(botId, { message: { text } })
  // A reader that takes nothing: the reload does not wait for it, and it sees no end.
  const readers = await Promise.all([0, 1, 2, 3].map((shard) => slowReader(source, shard)))
  const before = load.copy()
  const file = join(temporaryDirectory(t), 'backup')
  const exporting = postbote(['export', file, ...remote(source, t)])
  const beganMs = performance.now()
  await done(postbote(['reload', `--dir=${source.dir}`]))
  assert(performance.now() - beganMs < 25_000)
  await done(exporting)
  const cut = await Promise.all(readers.map((reader) => reader.isCut()))
  assert(cut.includes(true))
  await load.end()
  const dir = join(temporaryDirectory(t), 'data')
  await done(postbote(['import', file, `--dir=${dir}`]))
  const server = await startServer(t, { dir })
  for (const [id, acknowledged] of before) {
    const bot = load.bots.find((each) => each.botId === id)
    assert(bot !== undefined)
    const pending = new Set((await pendingOf(server, bot)).map((update) => update.update_id))
    for (const updateId of acknowledged.keys()) assert(pending.has(updateId))
  }
})

async function slowReader(server: Server, shard: number) {
  const { status, body } = await fetch(`${server.privateUrl}/v1/shards/${shard}/records`, {
    headers: { authorization: `Bearer ${server.key}` },
  })
  assert.equal(status, 200)
  assert(body !== null)
  return {
    /** Whether the response ends without the last frame, however its connection ended. */
    async isCut(): Promise<boolean> {
      const frames = new BackupFrames()
      const section = new SectionCheck()
      try {
        for await (const part of body) {
          for (const frame of frames.take(Buffer.from(part))) section.take(frame)
        }
      } catch (error) {
        if (error instanceof BackupError) throw error
      }
      return !section.isComplete
    },
  }
}

test('files that are not whole, and places that are in use, are refused and not changed', async (t) => {
  const directory = temporaryDirectory(t)
  const server = await startServer(t)
  const file = join(directory, 'backup')
  await done(postbote(['export', file, ...remote(server, t)]))
  const onto = await postbote(['export', file, ...remote(server, t)])
  assert.deepEqual([onto.code, /expected a new file/.test(onto.output)], [2, true], onto.output)
  const piped = await postbote(['export', '-', ...remote(server, t)])
  assert.deepEqual([piped.code, /standard output/.test(piped.output)], [2, true], piped.output)
  const used = await postbote(['import', file, `--dir=${server.dir}`])
  assert.notEqual(used.code, 0)
  // Reading a large file takes minutes, so what can be known before is said before.
  assert.doesNotMatch(used.output, /checking the file/)
  await server.stop()
  const full = await postbote(['import', file, `--dir=${server.dir}`])
  assert.deepEqual([full.code, /expected a new directory/.test(full.output)], [2, true])

  const dir = join(directory, 'data')
  const odd = await postbote(['import', file, `--dir=${dir}`, '--shards=7'])
  assert.deepEqual([odd.code, /--shards: expected/.test(odd.output)], [2, true], odd.output)
  assert.doesNotMatch(odd.output, /checking the file/)
  const half = join(directory, 'half')
  writeFileSync(half, readFileSync(file))
  truncateSync(half, statSync(file).size - 1)
  const refused = await postbote(['import', half, `--dir=${dir}`])
  assert.deepEqual([refused.code, /half: the backup is damaged/.test(refused.output)], [1, true])
  assert(!existsSync(dir))
  const gone = await postbote(['export', join(directory, 'none'), ...remote(server, t)])
  assert.deepEqual([gone.code, /no server responds/.test(gone.output)], [1, true], gone.output)
  assert.deepEqual(readdirSync(directory).toSorted(), ['backup', 'half'])
})

test('a full disk leaves no file, and says what is wrong', {
  skip: smallDiskObstacle() ?? false,
}, async (t) => {
  const server = await startServer(t)
  const { botId } = await server.register()
  await server.push(botId, { message: { text: 'x'.repeat(400_000) } })
  const disk = await SmallDisk.start(t, { mebibytes: 1 })
  disk.fill()
  const [program = '', ...prefix] = disk.prefix({})
  const args = ['export', join(disk.directory, 'backup'), ...remote(server, t)]
  const { status, stderr } = spawnSync(program, [...prefix, process.execPath, mainFile, ...args])
  assert.deepEqual([status, /ENOSPC/.test(String(stderr))], [1, true], String(stderr))
  const { stdout } = spawnSync(program, [...prefix, 'ls', disk.directory])
  assert(!String(stdout).includes('backup'), String(stdout))
})

test('an import that was interrupted is never served, and can be repeated', async (t) => {
  const directory = temporaryDirectory(t)
  const server = await startServer(t)
  const bot = await server.register()
  await server.push(bot.botId, { message: { number: 1 } })
  const file = join(directory, 'backup')
  await done(postbote(['export', file, ...remote(server, t)]))
  await server.stop()
  const dir = join(directory, 'data')
  await done(postbote(['import', file, `--dir=${dir}`]))
  // What an import leaves that ends before its last step.
  mkdirSync(join(dir, 'unfinished-import'))
  renameSync(join(dir, 'shards'), join(dir, 'unfinished-import', 'shards'))
  const serve = ['serve', `--dir=${dir}`, '--http-port=0', '--admin-port=0']
  const served = await postbote(serve)
  assert.deepEqual([served.code, /shards/.test(served.output)], [1, true], served.output)
  // What it leaves that ends at its beginning.
  const begun = join(directory, 'begun')
  mkdirSync(join(begun, 'unfinished-import'), { recursive: true })
  const refused = await postbote(['serve', `--dir=${begun}`, '--http-port=0', '--admin-port=0'])
  assert.match(refused.output, /an import into .* was interrupted/)
  await done(postbote(['import', file, `--dir=${dir}`]))
  assert(!existsSync(join(dir, 'unfinished-import')))
  const again = await startServer(t, { dir })
  assert.equal((await pendingOf(again, bot)).length, 1)
})

test('a shard whose sending breaks off is asked for again, and one that is set aside ends the export', async (t) => {
  const sections = sectionsOf(2, [101, 102, 103])
  const bytesOf = (shard: number): Buffer =>
    sectionBytes(sections[shard] ?? { entries: [] }, { shard, shards: 2 })
  const asked: string[] = []
  const flaky: RequestListener = ({ url = '' }, response) => {
    asked.push(url)
    const shard = Number(/\d(?=\/records)/.exec(url))
    const attempt = asked.filter((each) => each === url).length
    response.setHeader('Content-Type', 'application/octet-stream')
    if (attempt === 1) refuse(response, 'STORE_UNAVAILABLE')
    // An earlier version of the server.
    else if (url === '/v1/update-types') refuse(response, 'NOT_FOUND', 404)
    else if (attempt === 2) {
      response.write(bytesOf(shard).subarray(0, 100), () => response.destroy())
    } else if (attempt === 3) response.end(bytesOf(shard).subarray(0, -1))
    else response.end(bytesOf(shard))
  }
  const file = join(temporaryDirectory(t), 'backup')
  const output = await done(postbote(['export', file, ...(await fakeServer(t, flaky))]))
  assert.match(output, /shard 1 is asked for again/)
  assert.match(output, /^9 records of \d+ shards exported/m)
  assert.equal(asked.length, 10)
  const dir = join(temporaryDirectory(t), 'data')
  assert.match(await done(postbote(['import', file, `--dir=${dir}`])), /\n9 records of the export/)

  const none = join(temporaryDirectory(t), 'none')
  const end = await postbote(['export', none, ...(await fakeServer(t, isAside))])
  assert.deepEqual([end.code, /503 SHARD_BROKEN: a text/.test(end.output)], [4, true])
  assert(!existsSync(none) && !existsSync(`${none}.part`))
})

const isAside: RequestListener = (_request, response) => refuse(response, 'SHARD_BROKEN')

function refuse(response: ServerResponse, code: string, status = 503): void {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify({ error: { code, message: 'a text' } }))
}

async function fakeServer(t: TestContext, listener: RequestListener): Promise<readonly string[]> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  const address = server.address()
  assert(address !== null && typeof address === 'object')
  const keyFile = join(temporaryDirectory(t), 'key')
  writeFileSync(keyFile, 'a-key-of-some-length\n', { mode: 0o600 })
  return ['--url', `http://127.0.0.1:${address.port}`, '--key-file', keyFile]
}
