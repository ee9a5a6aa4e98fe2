import assert from 'node:assert/strict'
import {
  cpSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { slotOfBot } from '../../src/process/shard-map.ts'
import { postbote } from '../support/programs/postbote.ts'
import { type RegisteredBot, type Server, startServer } from '../support/server/server.ts'
import { editFile, filesWith } from '../support/store/level-shard.ts'

const shards = 8

/** The progress is on lines of its own. */
function jsonIn(output: string): string {
  return output.split('\n').find((line) => line.startsWith('{')) ?? ''
}

/** Returns an id whose bot belongs to this shard. */
function idIn(shard: number): number {
  for (let id = 5_000; ; id++) if (slotOfBot(id) % shards === shard) return id
}

async function push(server: Server, { botId }: RegisteredBot, count: number): Promise<number[]> {
  const ids: number[] = []
  for (let number = 0; number < count; number++) {
    const id = await server.push(botId, { message: { text: `${number} `.padEnd(600, 'lorem') } })
    ids.push(id ?? 0)
  }
  return ids
}

/** The damages to the files of a shard, and the report about each. */
const damages: readonly { readonly told: RegExp; readonly damage: (shard: string) => void }[] = [
  {
    told: /shards\/0\/\d+\.ldb, byte 0: checksum mismatch of the block/,
    damage: (shard) => editFile(first(shard, '.ldb'), (bytes) => bytes.fill(0, 512, 1_024)),
  },
  {
    told: /shards\/1\/\d+\.log, byte 0: the log is missing, and the MANIFEST names it/,
    damage: (shard) => rmSync(first(shard, '.log')),
  },
  {
    told: /shards\/2\/CURRENT, byte 0: is missing/,
    damage: (shard) => rmSync(join(shard, 'CURRENT')),
  },
  {
    told: /shards\/3\/MANIFEST-\d+, byte 0: /,
    damage: (shard) => editFile(manifestOf(shard), (bytes) => bytes.fill(0, 0, 40)),
  },
  {
    told: /shards\/4\/\d+\.ldb, byte \d+: index: checksum mismatch/,
    damage: (shard) =>
      editFile(first(shard, '.ldb'), (bytes) => {
        bytes[bytes.length - 60] = (bytes[bytes.length - 60] ?? 0) ^ 4
        return bytes
      }),
  },
  {
    told: /shards\/5\/\d+\.ldb, byte 800: the table has 800 bytes, and the MANIFEST says \d+/,
    damage: (shard) => truncateSync(first(shard, '.ldb'), 800),
  },
  {
    told: /shards\/6, byte 0: the directory is missing/,
    damage: (shard) => rmSync(shard, { recursive: true }),
  },
  {
    told: /shard 7: no damage was found, the shard is unchanged/,
    damage: () => undefined,
  },
]

function first(shard: string, ending: string): string {
  const [path] = filesWith(shard, ending)
  assert(path !== undefined, `no ${ending} in ${shard}`)
  return path
}

function manifestOf(shard: string): string {
  const [path = ''] = filesWith(shard, '').filter((each) => basename(each).startsWith('MANIFEST'))
  return path
}

/** A bot of each shard, and the ids of its updates. */
type Given = readonly { readonly bot: RegisteredBot; readonly ids: number[] }[]

/** Each bot has 12 updates in a table and 3 in the log. */
async function serverWithUpdates(t: TestContext): Promise<{ server: Server; given: Given }> {
  const before = await startServer(t, { flags: [`--shards=${shards}`] })
  const given: { bot: RegisteredBot; ids: number[] }[] = []
  for (let shard = 0; shard < shards; shard++) {
    const bot = await before.register(idIn(shard))
    given.push({ bot, ids: await push(before, bot, 12) })
  }
  const server = await before.restart()
  for (const { bot, ids } of given) ids.push(...(await push(server, bot, 3)))
  return { server, given }
}

test('verify names all damage that repair mends, with different damage in each shard, and the server continues with new ids', async (t) => {
  const { server, given } = await serverWithUpdates(t)
  const { dir } = server
  const refused = await postbote(['repair', `--dir=${dir}`])
  assert.equal(refused.code, 3)
  assert.match(refused.output, /another server is running/)
  const beside = await postbote(['verify', `--dir=${dir}`])
  assert.equal(beside.code, 0, beside.output)
  assert.match(beside.output, /a server runs on this directory/)
  await server.stop()

  for (const [shard, { damage }] of damages.entries()) damage(join(dir, 'shards', `${shard}`))
  const verified = await postbote(['verify', `--dir=${dir}`])
  assert.equal(verified.code, 1)
  const inJson = await postbote(['verify', `--dir=${dir}`, '--json'])
  assert.equal(inJson.code, 1)
  const found: { damages: number; lines: string[] } = JSON.parse(jsonIn(inJson.output))
  assert.equal(
    found.lines.at(-1),
    found.damages === 1 ? '1 damage found' : `${found.damages} damages found`,
  )
  assert.deepEqual(
    found.lines.filter((line) => !verified.output.includes(line)),
    [],
  )
  const one = await postbote(['repair', `--dir=${dir}`, '--shard=0', '--json'])
  assert.equal(one.code, 0, one.output)
  assert.deepEqual(JSON.parse(jsonIn(one.output)).failed_shards, [])
  assert.match(one.output, /shard 0: rescued \d+ records/)
  assert.doesNotMatch(one.output, /shard [1-9]/)
  const repaired = await postbote(['repair', `--dir=${dir}`])
  assert.equal(repaired.code, 0, repaired.output)
  for (const [shard, { told }] of damages.entries()) {
    if (shard < 7) assert.match(verified.output, told)
    if (shard > 0) assert.match(repaired.output, told)
  }
  assert.match(
    repaired.output,
    /shard 1: a log is damaged, so the newest updates of any bot in this shard may be lost/,
  )
  assert.doesNotMatch(repaired.output, /shard [^1]: the newest updates/)
  assert.match(repaired.output, /shard 0: no damage was found, the shard is unchanged/)
  const again = await postbote(['verify', `--dir=${dir}`])
  assert.equal(again.code, 0, again.output)
  assert.match(again.output, /^no damage was found$/m)
  const kept = readdirSync(join(dir, 'shards')).filter((name) => /^\d\.damaged-\d+$/.test(name))
  assert.equal(kept.length, 6)

  await assertServed(await server.restart(), given)
})

/** Checks that each bot has all updates that can be left, and that the next id was never assigned before. */
async function assertServed(server: Server, given: Given): Promise<void> {
  // Everything if only lists of files are damaged; the updates of the log if a table is; those of the tables if a log is.
  const leftMin = [3, 12, 15, 15, 15, 3, 0, 15]
  for (const [shard, { bot, ids: before }] of given.entries()) {
    const ids = await idsAt(server, bot)
    assert(ids.length >= (leftMin[shard] ?? 0), `shard ${shard}: ${ids.length} updates are left`)
    assert.deepEqual(new Set([...before, ...ids]), new Set(before))
    const [next = 0] = await push(server, bot, 1)
    assert(next > Math.max(...before), `shard ${shard}: ${next} was given after ${before.at(-1)}`)
  }
}

/** Returns the ids of the updates that the bot gets; if its registration was lost, it is registered again. */
async function idsAt(server: Server, bot: RegisteredBot): Promise<number[]> {
  const known = await server.admin('GET', `/v1/bots/${bot.botId}`)
  const { token } = known.status === 200 ? bot : await server.register(bot.botId)
  const { body } = await server.call(token, 'getUpdates', { offset: 0 })
  return body.result.map((update: { update_id: number }) => update.update_id)
}

test('a shard whose files cannot be opened is named and left unchanged, and other shards are repaired', async (t) => {
  const { server } = await serverWithUpdates(t)
  await server.stop()
  const dir = `--dir=${server.dir}`
  const shard = (number: number): string => join(server.dir, 'shards', `${number}`)
  const table = first(shard(3), '.ldb')
  rmSync(table)
  // Nobody can open this, not even root.
  symlinkSync(table, table)
  rmSync(join(shard(4), 'CURRENT'))
  for (const name of ['verify', 'repair'] as const) {
    const { code, output } = await postbote([name, dir])
    assert.equal(code, 1, output)
    const what =
      name === 'verify' ? 'cannot be checked' : 'the repair failed and the shard is unchanged'
    assert.match(output, new RegExp(`shard 3: ${what}: ELOOP.*open`))
    assert.match(output, /shards\/4\/CURRENT, byte 0: is missing/)
    if (name === 'repair') assert.match(output, /shard 4: rescued \d+ records/)
  }
  assert(readdirSync(shard(3)).includes(basename(table)))
})

test('an option that the command does not have is refused before anything is read', async (t) => {
  const server = await startServer(t, { flags: ['--shards=2'] })
  await server.stop()
  const dir = `--dir=${server.dir}`
  for (const args of [
    ['verify', dir, '--shards=1'],
    ['repair', dir, '--shards', '1'],
    ['verify', dir, '--rebuild'],
  ]) {
    const { code, output } = await postbote(args)
    assert.equal(code, 2, output)
    assert.match(
      output,
      /^postbote: --(?:shards|rebuild): expected only --shard, .*--dir or --config with (?:verify|repair)$/m,
    )
  }
})

test('another number of shards is refused, and without shards/ all shards are created again and reported as lost', async (t) => {
  const server = await startServer(t, { flags: [`--shards=${shards}`] })
  for (let shard = 0; shard < shards; shard++) await server.register(idIn(shard))
  await server.stop()
  const dir = `--dir=${server.dir}`
  const record = join(server.dir, 'postbote.json')
  const right = readFileSync(record, 'utf8')
  for (const [count, told] of [
    [4, /postbote\.json says that there are 4 shards, but shards\/ has more: 4, 5, 6, 7; restore/],
    [16, /belongs to shard \d+: .* than postbote\.json says/],
  ] as const) {
    writeFileSync(record, right.replace('8', `${count}`))
    for (const name of ['verify', 'repair']) {
      const { code, output } = await postbote([name, dir])
      assert.equal(code, 1, name)
      assert.match(output, told)
    }
    assert.equal(readdirSync(join(server.dir, 'shards')).length, shards)
  }
  rmSync(record)
  const without = await postbote(['repair', dir])
  assert.equal(without.code, 1)
  assert.match(without.output, /expected a data directory with a postbote\.json/)

  writeFileSync(record, right)
  const wrong = await postbote(['verify', dir, '--shard=8'])
  assert.equal(wrong.code, 2)
  assert.match(wrong.output, /--shard: expected a number from 0 to 7/)

  rmSync(join(server.dir, 'shards'), { recursive: true })
  const { code, output } = await postbote(['repair', dir])
  assert.equal(code, 0, output)
  for (let shard = 0; shard < shards; shard++) {
    assert.match(output, new RegExp(`shards/${shard}, byte 0: the directory is missing`))
    assert.match(
      output,
      new RegExp(`shard ${shard}: no record was found, everything in the shard is lost`),
    )
  }
  const next = await server.restart()
  const bot = await next.register()
  assert.equal((await push(next, bot, 1)).length, 1)
})

test('after a backup was restored and rebuilt, no update gets an id that was used since the backup', async (t) => {
  const server = await startServer(t, { workers: 1, flags: [`--shards=${shards}`] })
  const bot = await server.register()
  await push(server, bot, 3)
  await server.stop()
  const backup = `${server.dir}-backup`
  copy(server.dir, backup)
  const later = await server.restart()
  const used = await push(later, bot, 3)
  await later.stop()

  rmSync(server.dir, { recursive: true })
  copy(backup, server.dir)
  const { code, output } = await postbote(['repair', '--dir', server.dir, '--rebuild'])
  assert.equal(code, 0, output)
  const restored = await later.restart()
  const [id = 0] = await push(restored, bot, 1)
  assert(id >= (used[0] ?? 0) + 1_000_000, `${id} after ${used.join()}`)
  const { result } = (await restored.call(bot.token, 'getUpdates')).body
  assert.equal(result.length, 4, 'the updates of the backup are there')
})

/** Copies a data directory without its sockets. */
function copy(from: string, to: string): void {
  cpSync(from, to, { recursive: true, filter: (path) => basename(path) !== 'run' })
}
