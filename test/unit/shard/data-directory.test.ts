import assert from 'node:assert/strict'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { parseAddedType } from '../../../src/kit/added-type.ts'
import {
  ensureAdminKey,
  prepareDataDirectory,
  readAdminKey,
  shardPath,
} from '../../../src/shard/data-directory.ts'
import { levelEngine } from '../../../src/store/level/level-engine.ts'
import { assertNewShardOrMade } from '../../../src/store/level/new-shard.ts'

let root: string
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'pb-dir-'))
})
afterEach(() => rmSync(root, { recursive: true }))

const at = (...names: string[]): string => join(root, ...names)
const modeOf = (path: string): number => statSync(path).mode & 0o777
const prepare = (shards?: number) =>
  prepareDataDirectory({ path: at('data'), shards, shardsDefault: 8, files: levelEngine.files })

test('a new data directory gives others no access and contains its shards', async () => {
  const data = await prepare(4)
  assert.equal(data.shards, 4)
  assert.deepEqual(data.warnings, [])
  for (const path of [data.path, data.runPath, shardPath(data.path, 0), shardPath(data.path, 3)]) {
    assert.equal(modeOf(path), 0o700, path)
  }
  assert.deepEqual(readdirSync(at('data')).toSorted(), ['postbote.json', 'run', 'shards'])
  assert.equal(
    readFileSync(at('data', 'postbote.json'), 'utf8'),
    '{"format":3,"shards":4,"made":true}\n',
  )
})

test('the number of shards is remembered, and the error for another one names both', async () => {
  assert.equal((await prepare()).shards, 8)
  assert.equal((await prepare()).shards, 8)
  assert.equal((await prepare(8)).shards, 8)
  await assert.rejects(prepare(16), /created with 8 shards, but --shards is 16/)
  assert.equal(existsSync(shardPath(at('data'), 8)), false)
})

const prepareTyped = (...types: readonly string[]) =>
  prepareDataDirectory({
    path: at('data'),
    shards: 4,
    shardsDefault: 8,
    files: levelEngine.files,
    types: types.flatMap((text) => parseAddedType(text) ?? []),
  })
const recorded = (): unknown => JSON.parse(readFileSync(at('data', 'postbote.json'), 'utf8'))

test('a directory has format 4, which an older server refuses, only once there is an added type', async () => {
  await prepareTyped()
  assert.deepEqual(recorded(), { format: 3, shards: 4, made: true })
  const { types } = await prepareTyped('order:order.id:60', 'ping')
  assert.deepEqual(
    types.map(({ name, ttlS }) => [name, ttlS]),
    [
      ['order', 60],
      ['ping', undefined],
    ],
  )
  const typed = { format: 4, shards: 4, made: true, types: ['order:order.id', 'ping'] }
  assert.deepEqual(recorded(), typed)
  await prepareTyped('ping', 'order:order.id')
  assert.deepEqual(recorded(), typed)
  await prepareTyped('new', 'ping', 'order:order.id')
  assert.deepEqual(recorded(), { ...typed, types: [...typed.types, 'new'] })
})

test('a new directory can begin with added types', async () => {
  await prepareTyped('ping')
  assert.deepEqual(recorded(), { format: 4, shards: 4, made: true, types: ['ping'] })
})

test('a start that does not name a type of the directory is refused, and changes nothing', async () => {
  await prepareTyped('order:order.id', 'ping')
  const before = recorded()
  await assert.rejects(prepareTyped('new', 'ping'), /give again: --update-type order:order.id$/)
  await assert.rejects(prepareTyped('order', 'ping'), /give again: --update-type order:order.id$/)
  await assert.rejects(prepare(), /give again: --update-type order:order.id --update-type ping$/)
  assert.deepEqual(recorded(), before)
})

test('shards that no files of this machine hold have no directories, and none are missed', async () => {
  const options = { path: at('data'), shardsDefault: 8, files: undefined }
  assert.equal((await prepareDataDirectory({ ...options, shards: 4 })).shards, 4)
  assert.equal((await prepareDataDirectory({ ...options, shards: undefined })).shards, 4)
  assert.equal(existsSync(at('data', 'shards')), false)
})

test('a number of shards that is no power of two is refused before anything is recorded', async () => {
  for (const shards of [0, 3, 512, 1.5, -2, Number.NaN]) {
    await assert.rejects(prepare(shards), /power of two/)
  }
  assert.deepEqual(readdirSync(at('data')), [])
  assert.equal((await prepare(256)).shards, 256)
})

test('a record that is missing, broken or of another version is refused and not replaced', async () => {
  await prepare(4)
  const record = at('data', 'postbote.json')
  for (const text of [
    '',
    '{}',
    '{"format":3,"shards":"4","made":true}',
    '{"format":3,"shards":4}',
    '{"format":3,"shards":7,"made":true}',
    '{"format":4,"shards":4,"made":true}',
    '{"format":4,"shards":4,"made":true,"types":["Order"]}',
    '{"format":4,"shards":4,"made":true,"types":["ping","ping"]}',
    'null',
  ]) {
    writeFileSync(record, text)
    const expected = text.includes('"format":4')
      ? /expected \{"format":4,"shards":N,"made":true,"types":\["TYPE"\]\}/
      : /expected \{"format":3,"shards":N,"made":true\}/
    await assert.rejects(prepare(), expected)
    assert.equal(readFileSync(record, 'utf8'), text)
  }
  for (const [format, made] of [
    [0, 'an older'],
    [1, 'an older'],
    [2, 'an older'],
    [5, 'a newer'],
  ] as const) {
    const text = `{"format":${format},"shards":4,"made":true}`
    writeFileSync(record, text)
    const expected = `has format ${format}, but this version knows only formats 3 and 4; ${made} Postbote`
    await assert.rejects(prepare(), new RegExp(expected))
    assert.equal(readFileSync(record, 'utf8'), text)
  }
  rmSync(record)
  await assert.rejects(prepare(4), /postbote.json is missing/)
  assert.equal(existsSync(record), false)
})

test('a shard is created only once, so a missing one stays missing, and the number is not guessed', async () => {
  await prepare(8)
  rmSync(shardPath(at('data'), 3), { recursive: true })
  rmSync(shardPath(at('data'), 7), { recursive: true })
  await prepare()
  await assert.rejects(assertNewShardOrMade(shardPath(at('data'), 3)), {
    name: 'ShardDamaged',
    message: /shards\/3: the directory is missing/,
  })
  assert.equal(existsSync(shardPath(at('data'), 7)), false)
})

test('a shards directory that is missing, or that has another number of shards than was recorded, is refused', async () => {
  await prepare(8)
  const record = at('data', 'postbote.json')
  const right = readFileSync(record, 'utf8')
  for (const [count, found] of [
    [4, /says that there are 4 shards, but .*shards has 8, and the last one is 7/],
    [16, /says that there are 16 shards, but .*shards has 8/],
  ] as const) {
    writeFileSync(record, right.replace('8', `${count}`))
    await assert.rejects(prepare(), found)
  }
  writeFileSync(record, right)
  rmSync(at('data', 'shards'), { recursive: true })
  await assert.rejects(prepare(), /shards is missing or empty, but .* 8 shards/)
  assert.equal(existsSync(at('data', 'shards')), false)
})

test('missing shards that had ids stay missing, even if as many are left as there may have been', async () => {
  await prepare(4)
  mkdirSync(at('data', 'ids'))
  for (const shard of [0, 1, 2, 3]) writeFileSync(at('data', 'ids', `${shard}`), '{}')
  for (const shard of [2, 3]) rmSync(shardPath(at('data'), shard), { recursive: true })
  assert.equal((await prepare()).shards, 4)
  await assert.rejects(assertNewShardOrMade(shardPath(at('data'), 3)), /the directory is missing/)
})

test('a first start that was interrupted is continued', async () => {
  await prepare(4)
  writeFileSync(at('data', 'postbote.json'), '{"format":3,"shards":4,"made":false}\n')
  rmSync(shardPath(at('data'), 3), { recursive: true })
  assert.equal((await prepare()).shards, 4)
  assert.equal(await assertNewShardOrMade(shardPath(at('data'), 3)), true)
  assert.match(readFileSync(at('data', 'postbote.json'), 'utf8'), /"made":true/)
})

test('an unfinished record that a crash has left has no effect', async () => {
  mkdirSync(at('data'), { mode: 0o700 })
  writeFileSync(at('data', 'postbote.json.tmp'), '{"form')
  assert.equal((await prepare(2)).shards, 2)
  assert.deepEqual(readdirSync(at('data')).toSorted(), ['postbote.json', 'run', 'shards'])
})

test('a directory that others can enter is closed, with a warning', async () => {
  await prepare(1)
  chmodSync(at('data'), 0o755)
  const data = await prepare(1)
  assert.equal(modeOf(data.path), 0o700)
  assert.match(data.warnings.join(), /had mode 0755/)
})

test('sockets move to a private temporary directory if the path is too long for them', async () => {
  const path = at('x'.repeat(60))
  const { files } = levelEngine
  const options = { path, shards: 1, shardsDefault: 8, files, temporary: root }
  const data = await prepareDataDirectory(options)
  assert.ok(data.runPath.startsWith(at('postbote-')))
  assert.equal(modeOf(data.runPath), 0o700)
  const tooLong = { ...options, temporary: at('y'.repeat(70)) }
  mkdirSync(tooLong.temporary)
  await assert.rejects(prepareDataDirectory(tooLong), /shorter data directory/)
})

test('the admin key is created once, has 256 bits, and only its owner can read it', async () => {
  await prepare(1)
  await assert.rejects(readAdminKey(at('data')), /cannot read the admin key from .* \(ENOENT\)$/)
  const { key } = await ensureAdminKey(at('data'), undefined)
  assert.match(key, /^[\w-]{43}$/)
  assert.equal(modeOf(at('data', 'admin.key')), 0o600)
  assert.equal((await ensureAdminKey(at('data'), undefined)).key, key)
  assert.equal(await readAdminKey(at('data')), key)
})

test('permissions of an admin key file are reduced if the server owns it, and reported if the operator does', async () => {
  await prepare(1)
  await ensureAdminKey(at('data'), undefined)
  chmodSync(at('data', 'admin.key'), 0o644)
  assert.match((await ensureAdminKey(at('data'), undefined)).warnings.join(), /had mode 0644/)
  assert.equal(modeOf(at('data', 'admin.key')), 0o600)
  writeFileSync(at('key'), ' 0123456789abcdef\n', { mode: 0o644 })
  const named = await ensureAdminKey(at('data'), at('key'))
  assert.equal(named.key, '0123456789abcdef')
  assert.match(named.warnings.join(), /every user/)
  assert.equal(modeOf(at('key')), 0o644)
})

test('an admin key that is missing, short or not fit for a header is refused without showing it', async () => {
  await assert.rejects(ensureAdminKey(root, at('key')))
  for (const text of ['', 'secret', 'secretsecret secretsecret', 'secretsecretsecret\u00e9']) {
    writeFileSync(at('key'), text, { mode: 0o600 })
    await assert.rejects(readAdminKey(root, at('key')), (error: Error) => {
      assert.match(error.message, /at least 16/)
      assert.doesNotMatch(error.message, /secret/)
      return true
    })
  }
})
