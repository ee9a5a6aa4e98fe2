/** `postbote database init`, `import` and `export`, and what refuses to start on a database. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, type TestContext, test } from 'node:test'
import { lockedExitCode } from '../../src/cli/commands/run-command.ts'
import { readFilesIn } from '../support/kit/files-in.ts'
import { temporaryDirectory } from '../support/kit/temporary-directory.ts'
import { postbote } from '../support/programs/postbote.ts'
import {
  botsOfAllShards,
  databaseWorld,
  joinedDatabases,
  type TestDatabase,
} from '../support/server/database.ts'
import { type RegisteredBot, type Server, startServer } from '../support/server/server.ts'

const shards = 8
const password = 'pass-word-7c1f'
const world = databaseWorld()
const skip = world.obstacle

interface FilledBot extends RegisteredBot {
  /** Of the updates that are pending. */
  readonly ids: number[]
}

/** A directory of a stopped server with bots in every shard, for all tests that read one. */
const filledDirectory = mkdtempSync(join(tmpdir(), 'postbote-filled-'))
after(() => rmSync(filledDirectory, { recursive: true, force: true }))
const filled: { readonly bots: FilledBot[] } = { bots: [] }

function serveArgs(t: TestContext, dir = join(temporaryDirectory(t), 'data')): string[] {
  return ['serve', `--dir=${dir}`, '--workers=2', '--http-port=0', '--admin-port=0']
}

async function fill(t: TestContext): Promise<void> {
  const server = await startServer(t, { dir: join(filledDirectory, 'data'), flags: ['--shards=8'] })
  const bots = await botsOfAllShards(server)
  filled.bots.push(...(await Promise.all(bots.map((bot) => filledBot(server, bot)))))
  const [first] = filled.bots
  assert(first !== undefined)
  await server.call(first.token, 'getUpdates', { offset: (first.ids[4] ?? 0) + 1 })
  first.ids.splice(0, 5)
  await keyed(server, first.botId)
  await server.stop()
  // Sockets cannot be copied.
  rmSync(join(server.dir, 'run'), { recursive: true })
}

async function filledBot(server: Server, bot: RegisteredBot): Promise<FilledBot> {
  const ids: number[] = []
  for (let number = 0; number < 8; number++) {
    const id = await server.push(bot.botId, { message: { number } })
    assert(id !== undefined)
    ids.push(id)
  }
  await server.push(bot.botId, { message: {} }, 'test=true')
  return { ...bot, ids }
}

/** Pushes an update with a key, and returns its id. */
async function keyed(server: Server, botId: number): Promise<number> {
  const key = { 'idempotency-key': 'the-key' }
  const path = `/v1/bots/${botId}/updates`
  const { status, text, body } = await server.admin('POST', path, { message: { n: 1 } }, key)
  assert.equal(status, 200, text)
  return body.update_id
}

function digestOf(directory: string): string {
  const hash = createHash('sha256')
  const names = readdirSync(directory, { recursive: true, withFileTypes: true })
  for (const each of names.filter((entry) => entry.isFile() && entry.name !== 'lock')) {
    const path = join(each.parentPath, each.name)
    hash.update(path).update(readFileSync(path))
  }
  return hash.digest('hex')
}

async function recordsOf(...databases: readonly TestDatabase[]): Promise<string> {
  const hash = createHash('sha256')
  for (let shard = 0; shard < shards; shard++) {
    const database = databases[shard % databases.length]
    assert(database !== undefined)
    const { postgres, name } = database
    for (const kind of ['u', 's', 'r']) {
      const text = `SELECT encode(key, 'hex') k, encode(value, 'hex') v FROM ${kind}_${shard} ORDER BY key`
      hash.update(JSON.stringify(await postgres.query(text, name)))
    }
  }
  return hash.digest('hex')
}

function at(user: string, secret: string, host: string, name = 'guarded'): string {
  return `postgres://${user}:${secret}@${host}/${name}`
}

test('init makes the tables once, and names what is wrong with its options', { skip }, async () => {
  const { env, url } = await world.database('inits', 0)
  for (const count of ['7', '512']) {
    const { code, output } = await postbote(['database', 'init', `--shards=${count}`], env)
    assert.deepEqual([code, /--shards: expected/.test(output)], [2, true], output)
  }
  const none = await postbote(['database', 'init'])
  assert.deepEqual([none.code, /--database: expected/.test(none.output)], [2, true], none.output)
  const other = await postbote(['database', 'drop'], env)
  assert.deepEqual([other.code, /init, import or export/.test(other.output)], [2, true])
  const made = await postbote(['database', 'init', '--shards=32', `--database=${url}`])
  assert.equal(made.code, 0, made.output)
  assert.match(made.output, /^cluster [\da-f-]{36} with 32 shards in 127\.0\.0\.1:\d+\/inits\n$/)
  const again = await postbote(['database', 'init', '--shards=32'], env)
  assert.equal(again.code, 1)
  assert.match(again.output, /127\.0\.0\.1:\d+\/inits: .*already has the tables/)
})

test('init takes as long as the database needs', { skip }, async () => {
  const { env, postgres, name } = await world.database('slow', 0)
  await postgres.query(
    `CREATE FUNCTION wait() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.5); END';
     CREATE EVENT TRIGGER slow ON ddl_command_start WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION wait()`,
    name,
  )
  const { code, output } = await postbote(['database', 'init', '--shards=2'], env)
  assert.equal(code, 0, output)
})

test('--help shows every command of a database, and help itself needs none', async () => {
  const { code, output } = await postbote(['database', '--help'])
  assert.equal(code, 0)
  for (const action of ['init', 'import', 'export'])
    assert.match(output, RegExp(`database ${action} --database URL`))
  const all = await postbote(['help', 'all'])
  assert.match(all.output, /postbote database init/)
  assert.match(all.output, /--database/)
})

test('serve refuses a database without tables, and other numbers of shards and workers', {
  skip,
}, async (t) => {
  const empty = await world.database('empty', 0)
  const refused = await postbote(serveArgs(t), empty.env)
  assert.equal(refused.code, 1)
  assert.match(refused.output, /127\.0\.0\.1:\d+\/empty: .*postbote database init/)
  const { env } = await world.database('eight')
  const shardsRefused = await postbote([...serveArgs(t), '--shards=16'], env)
  assert.equal(shardsRefused.code, 2)
  assert.match(shardsRefused.output, /--shards 16: expected 8, .*\/eight/)
  const workersRefused = await postbote([...serveArgs(t), '--workers=9'], env)
  assert.deepEqual([workersRefused.code, /--workers 9/.test(workersRefused.output)], [2, true])
})

test('a directory of an embedded server and a database are never mixed up', { skip }, async (t) => {
  await fill(t)
  const directory = join(filledDirectory, 'data')
  const before = digestOf(directory)
  const { env } = await world.database('mixed')
  const refused = await postbote(serveArgs(t, directory), env)
  assert.equal(refused.code, 2)
  assert.match(refused.output, /holds the shards of a server without a database/)
  assert.equal(digestOf(directory), before)
  // The other way around: the directory of a server with a database has no shards that could be served.
  const server = await startServer(t, { env })
  await server.stop()
  const embedded = await postbote(serveArgs(t, server.dir))
  assert.equal(embedded.code, 1)
  assert.match(embedded.output, /shards/)
})

test('everything is the same after import into several databases and export, and keys still deduplicate', {
  skip,
}, async (t) => {
  const directory = join(filledDirectory, 'data')
  const parts = [await world.database('imported', 0), await world.database('imported_too', 0)]
  const from = { env: await joinedDatabases(parts) }
  const imported = await postbote(['database', 'import', `--dir=${directory}`], from.env)
  assert.equal(imported.code, 0, imported.output)
  assert.match(imported.output, /[\d,]{3,} records of 8 shards copied into 127/)
  const exportedTo = join(temporaryDirectory(t), 'exported')
  const exported = await postbote(['database', 'export', `--dir=${exportedTo}`], from.env)
  assert.equal(exported.code, 0, exported.output)
  const to = await world.database('again')
  const again = await postbote(['database', 'import', `--dir=${exportedTo}`], to.env)
  assert.equal(again.code, 0, again.output)
  assert.equal(await recordsOf(to), await recordsOf(...parts))

  for (const place of [{ env: from.env }, { dir: exportedTo }]) {
    const server = await startServer(t, place)
    for (const { token, ids } of filled.bots.slice(1)) {
      const { body } = await server.call(token, 'getUpdates', { limit: 100 })
      assert.deepEqual(
        body.result.map((update: { update_id: number }) => update.update_id),
        ids,
      )
    }
    const [first] = filled.bots
    assert(first !== undefined)
    const { body } = await server.call(first.token, 'getUpdates')
    const last = body.result.at(-1).update_id
    assert.deepEqual(
      body.result.map((each: { update_id: number }) => each.update_id),
      [...first.ids, last],
    )
    assert.equal(await keyed(server, first.botId), last)
    const { body: testQueue } = await server.call(first.token, 'test/getUpdates')
    assert.equal(testQueue.result.length, 1)
    await server.stop()
  }
})

test('import refuses all but a stopped directory of the same shards and an empty database', {
  skip,
}, async (t) => {
  const directory = join(filledDirectory, 'data')
  const full = await world.database('filled')
  assert.equal((await postbote(['database', 'import', `--dir=${directory}`], full.env)).code, 0)
  const before = await recordsOf(full)
  const twice = await postbote(['database', 'import', `--dir=${directory}`], full.env)
  assert.deepEqual(
    [twice.code, /\/filled is not empty/.test(twice.output)],
    [1, true],
    twice.output,
  )
  assert.equal(await recordsOf(full), before)

  const four = await world.database('four', 4)
  const other = await postbote(['database', 'import', `--dir=${directory}`], four.env)
  assert.equal(other.code, 2)
  assert.match(other.output, /has 8 shards, and .*\/four has 4/)
  const missing = join(temporaryDirectory(t), 'missing')
  const nothing = await postbote(['database', 'import', `--dir=${missing}`], four.env)
  assert.deepEqual([nothing.code, /expected a data directory/.test(nothing.output)], [2, true])

  const server = await startServer(t, { data: directory })
  const empty = await world.database('vacant')
  const locked = await postbote(['database', 'import', `--dir=${server.dir}`], empty.env)
  assert.equal(locked.code, lockedExitCode, locked.output)
  await server.stop()
  const serving = await startServer(t, { env: empty.env })
  const bot = await serving.register()
  for (const [action, dir] of [
    ['import', directory],
    ['export', join(missing, 'x')],
  ] as const) {
    const busy = await postbote(['database', action, `--dir=${dir}`], empty.env)
    assert.equal(busy.code, 1, busy.output)
    assert.match(busy.output, /used by another server/)
  }
  assert((await serving.push(bot.botId, { message: {} })) !== undefined)
})

test('half of an import or of an export is never served', { skip }, async (t) => {
  const directory = join(filledDirectory, 'data')
  const half = await world.database('half')
  const check = 'ALTER TABLE u_4 ADD CONSTRAINT broken CHECK (length(value) < 0)'
  await half.postgres.query(check, half.name)
  const broken = await postbote(['database', 'import', `--dir=${directory}`], half.env)
  assert.deepEqual([broken.code, /"broken"/.test(broken.output)], [1, true], broken.output)
  await half.postgres.query('ALTER TABLE u_4 DROP CONSTRAINT broken', half.name)
  const refused = await Promise.all(
    [
      serveArgs(t),
      ['database', 'import', `--dir=${directory}`],
      ['database', 'export', `--dir=${join(temporaryDirectory(t), 'x')}`],
    ].map((args) => postbote(args, half.env)),
  )
  for (const { code, output } of refused) {
    assert.deepEqual([code, /\/half: an import .* did not end/.test(output)], [1, true], output)
  }

  const { env, postgres, name } = await world.database('whole')
  await postgres.query('ALTER TABLE u_4 RENAME TO hidden', name)
  const target = join(temporaryDirectory(t), 'target')
  const cut = await postbote(['database', 'export', `--dir=${target}`], env)
  assert.deepEqual([cut.code, /"u_4" does not exist/.test(cut.output)], [1, true], cut.output)
  const served = await postbote(serveArgs(t, target))
  assert.deepEqual([served.code, /shards/.test(served.output)], [1, true], served.output)
  await postgres.query('ALTER TABLE hidden RENAME TO u_4', name)
  assert.equal((await postbote(['database', 'export', `--dir=${target}`], env)).code, 0)
  const leftovers = readdirSync(target).filter((each) => each.startsWith('unfinished'))
  assert.deepEqual(leftovers, [])
  const onto = await postbote(['database', 'export', `--dir=${target}`], env)
  assert.deepEqual([onto.code, /has shards/.test(onto.output)], [2, true], onto.output)
  const server = await startServer(t, { dir: target })
  assert.equal((await server.admin('GET', '/readyz')).status, 200)
})

test('a database that cannot be used is named, with the reason, and without the password', {
  skip,
}, async (t) => {
  const { postgres } = await world.database('guarded')
  await postgres.query(
    `CREATE ROLE guard LOGIN PASSWORD '${password}'; CREATE ROLE weak LOGIN PASSWORD '${password}'`,
  )
  const hba = join(postgres.directory, 'pg_hba.conf')
  writeFileSync(hba, `host all guard,weak 127.0.0.1/32 scram-sha-256\n${readFileSync(hba, 'utf8')}`)
  await postgres.query('SELECT pg_reload_conf()')
  const here = `127.0.0.1:${postgres.port}`
  mkdirSync(join(filledDirectory, 'empty'), { recursive: true })
  const cases: readonly (readonly [string, RegExp])[] = [
    [
      at('guard', `wrong-${password}`, here),
      /127\.0\.0\.1:\d+.*password authentication failed.*check --database/,
    ],
    [at('guard', password, 'no-such-host.invalid'), /no-such-host\.invalid:5432.*check --database/],
    [at('guard', password, '127.0.0.1:1'), /127\.0\.0\.1:1.*ECONNREFUSED.*check --database/],
    [at('nobody', password, here), /127\.0\.0\.1:\d+.*check --database/],
    [
      at('guard', password, here, 'unknown'),
      /127\.0\.0\.1:\d+.*"unknown" does not exist.*check --database/,
    ],
    [at('weak', password, here), /127\.0\.0\.1:\d+\/guarded: permission denied.*role/],
  ]
  const check = async ([url, expected]: (typeof cases)[number], nth: number): Promise<void> => {
    const dir = `--dir=${join(filledDirectory, 'empty')}`
    const args = nth % 2 === 0 ? serveArgs(t) : ['database', 'export', dir]
    const { code, output } = await postbote(args, { POSTBOTE_DATABASE: url })
    assert.equal(code, 1, output)
    assert.match(output, expected)
    assert(!output.includes(password), output)
  }
  await Promise.all(cases.map(check))
  const unnamed: readonly string[] = [
    `mysql://guard:${password}@h/x`,
    `postgres://guard:${password}@h/%zz`,
    // Whoever forgets to encode a slash in the password sees none of it.
    `postgres://guard:12/${password}@h/x`,
  ]
  for (const url of unnamed) {
    const { code, output } = await postbote(serveArgs(t), { POSTBOTE_DATABASE: url })
    assert.deepEqual([code, output.includes(password)], [2, false], output)
    assert.match(output, /POSTBOTE_DATABASE: expected/)
  }
})

test('the password is in no log, page, command line, environment of a worker or file', {
  skip,
}, async (t) => {
  const { postgres } = await world.database('secret', 0)
  await postgres.query(
    `CREATE ROLE keeper LOGIN PASSWORD '${password}'; ALTER DATABASE secret OWNER TO keeper`,
  )
  const file = join(temporaryDirectory(t), 'options.json')
  const url = `postgres://keeper:${password}@127.0.0.1:${postgres.port}/secret?application_name=mine`
  writeFileSync(file, JSON.stringify({ database: url }), { mode: 0o600 })
  const flags = [`--config=${file}`, '--log-level=trace']
  const init = await postbote(['database', 'init', '--shards=8', `--config=${file}`])
  assert.equal(init.code, 0, init.output)
  const server = await startServer(t, { flags })
  const bot = await server.register()
  await server.push(bot.botId, { message: {} })
  const names = await postgres.query(
    "SELECT DISTINCT application_name FROM pg_stat_activity WHERE datname = 'secret' AND usename = 'keeper'",
  )
  assert(names.length > 8)
  for (const { application_name: name } of names) assert.match(String(name), /^postbote\//)
  await postgres.query(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'keeper'",
  )
  const pushed = await server.admin('POST', `/v1/bots/${bot.botId}/updates`, { message: {} })
  const pages = await Promise.all(
    ['/metrics', '/readyz', '/v1/bots'].map((path) => server.admin('GET', path)),
  )
  const seen = [pushed, ...pages].map(({ text }) => text)
  for (const pid of server.pids()) {
    seen.push(
      readFileSync(`/proc/${pid}/cmdline`, 'utf8'),
      readFileSync(`/proc/${pid}/environ`, 'utf8'),
    )
  }
  for (const bytes of readFilesIn(server.dir).values()) seen.push(bytes.toString('latin1'))
  await server.stop()
  seen.push(server.output())
  for (const text of seen) assert(!text.includes(password), text)
})
