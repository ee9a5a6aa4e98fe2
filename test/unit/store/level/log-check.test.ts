import assert from 'node:assert/strict'
import { cpSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { systemClock } from '../../../../src/kit/clock.ts'
import { recordClose } from '../../../../src/store/level/close-record.ts'
import { crc32c } from '../../../../src/leveldb-files/crc32c.ts'
import { LevelStore } from '../../../../src/store/level/level-store.ts'
import { checkLogs, droppedLines } from '../../../../src/store/level/log-check.ts'
import type { StoreOperation } from '../../../../src/store/store.ts'

let root: string
let shard: string
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'pb-logs-'))
  shard = join(root, 'shard')
})
afterEach(() => rmSync(root, { recursive: true }))

const everything = { gte: Buffer.from([0]), lt: Buffer.from([255]), limit: 1_000_000 }

function open(): LevelStore {
  return new LevelStore({ directory: shard, clock: systemClock, lockWaitMs: 0 })
}

function put(name: string, value: string): StoreOperation {
  return { type: 'put', key: Buffer.from(name), value: Buffer.from(value) }
}

/** Writes batches and leaves the shard as a killed process would: everything in the log, nothing in tables. */
async function writeAndCrash(batches: readonly (readonly StoreOperation[])[]): Promise<void> {
  const store = open()
  await store.open()
  for (const batch of batches) await store.write(batch, { sync: true })
  const copy = join(root, 'copy')
  cpSync(shard, copy, { recursive: true })
  await store.close()
  rmSync(shard, { recursive: true })
  cpSync(copy, shard, { recursive: true })
  rmSync(copy, { recursive: true })
}

function logPath(): string {
  const names = readdirSync(shard).filter((name) => name.endsWith('.log'))
  return join(shard, names.toSorted().at(-1)!)
}

function flip(path: string, offset: number): void {
  const bytes = readFileSync(path)
  bytes[offset]! ^= 0x40
  writeFileSync(path, bytes)
}

/** Returns the offset of the text in the log. */
function find(path: string, text: string): number {
  const offset = readFileSync(path).indexOf(text)
  assert.ok(offset > 0, text)
  return offset
}

/** Does what a shard does at its start and returns what it then holds. */
async function recover(): Promise<Map<string, string>> {
  const check = await checkLogs(shard)
  const store = open()
  await store.open()
  await store.write(check.salvaged, { sync: true })
  await check.done()
  const entries = await store.range(everything)
  await store.close()
  return new Map(entries.map((entry) => [String(entry.key), String(entry.value)]))
}

const numbered = (count: number, size = 300): StoreOperation[][] =>
  Array.from({ length: count }, (_, at) => [put(`key${at}`, `<${at}>`.padEnd(size, '.'))])

test('CRC-32C is the one of RFC 3720 at every length and offset', () => {
  assert.equal(crc32c(Buffer.from('123456789')), 0xe3069283)
  assert.equal(crc32c(Buffer.alloc(32)), 0x8a9136aa)
  assert.equal(crc32c(Buffer.alloc(32, 0xff)), 0x62a8ab43)
  assert.equal(crc32c(Buffer.from(Array.from({ length: 32 }, (_, at) => at))), 0x46dd794e)
  assert.equal(crc32c(Buffer.from('xx123456789x'), 2, 11), 0xe3069283)
  assert.equal(crc32c(Buffer.alloc(0)), 0)
})

test('a new, closed or crashed shard is healthy, and no copy is made', async () => {
  assert.deepEqual((await checkLogs(shard)).damages, [])
  await writeAndCrash([...numbered(500), ...numbered(1, 100_000)])
  const check = await checkLogs(shard)
  assert.deepEqual([check.damages, check.salvaged, check.operationsLost], [[], [], 0])
  assert.equal(readdirSync(shard).includes('damaged'), false)
  assert.equal((await recover()).size, 500)
  assert.deepEqual((await checkLogs(shard)).damages, [])
})

test('a log that is cut off anywhere is normal after a crash, and whole batches before the cut stay', async () => {
  await writeAndCrash([...numbered(3), [put('big', 'b'.repeat(70_000))]])
  const path = logPath()
  const whole = readFileSync(path)
  const bigStart = find(path, 'bbbb')
  for (const size of [
    whole.length - 1,
    bigStart + 40_000,
    32_768,
    32_771,
    65_536,
    bigStart,
    bigStart - 20,
    5,
  ]) {
    writeFileSync(path, whole.subarray(0, size))
    const check = await checkLogs(shard)
    assert.deepEqual([check.damages, check.salvaged], [[], []], `cut at ${size}`)
  }
  writeFileSync(path, whole.subarray(0, bigStart + 40_000))
  assert.deepEqual([...(await recover()).keys()], ['key0', 'key1', 'key2'])
})

test('an end of zeros that were never written is normal after a power loss', async () => {
  await writeAndCrash(numbered(20))
  const bytes = readFileSync(logPath())
  bytes.fill(0, bytes.length - 2_000)
  writeFileSync(logPath(), Buffer.concat([bytes, Buffer.alloc(100_000)]))
  const check = await checkLogs(shard)
  assert.deepEqual([check.damages, check.salvaged], [[], []])
})

test('one flipped bit costs one record, although LevelDB alone would drop the rest of the block', async () => {
  await writeAndCrash(numbered(200))
  const at = find(logPath(), '<10>')
  flip(logPath(), at)
  const check = await checkLogs(shard)
  assert.equal(check.damages.length, 1)
  assert.equal(check.damages[0]?.reason, 'checksum mismatch')
  assert.ok(check.damages[0].offset < at)
  assert.equal(check.operationsLost, 1)
  assert.equal(check.salvaged.length, 189)
  // `done` was not called, so the next check works on the same incident and makes no second copy.
  const found = await recover()
  assert.equal(found.size, 199)
  assert.equal(found.has('key10'), false)
  assert.deepEqual(readdirSync(join(shard, 'damaged')), ['1'])
  assert.deepEqual(readdirSync(join(shard, 'damaged', '1')), ['000003.log'])
  assert.deepEqual((await checkLogs(shard)).damages, [])
})

test('a flipped bit in a length or a type costs no other record', async () => {
  for (const [field, reason] of [
    [4, /checksum|length/],
    [5, /checksum|length/],
    [6, /type|checksum/],
  ] as const) {
    await writeAndCrash(numbered(200))
    // Before the value are its length (2), the key with its length and tag (7), and the headers of batch and piece.
    const header = find(logPath(), '<10>') - 2 - 7 - 12 - 7
    flip(logPath(), header + field)
    const check = await checkLogs(shard)
    assert.match(check.damages.map((damage) => damage.reason).join(), reason)
    assert.equal(check.operationsLost, 1)
    assert.equal((await recover()).size, 199)
    rmSync(shard, { recursive: true })
  }
})

test('salvaging never restores an older value', async () => {
  await writeAndCrash([
    [put('lost', '<lost>'.padEnd(100, '.'))],
    [put('a', 'old'), put('b', 'old')],
    ...numbered(200),
    [put('a', 'new'), { type: 'del', key: Buffer.from('b') }],
  ])
  flip(logPath(), find(logPath(), '<lost>'))
  const found = await recover()
  assert.equal(found.get('a'), 'new')
  assert.equal(found.has('b'), false)
  assert.equal(found.size, 201)
})

test('a batch over several blocks is kept up to its damage, and the next one in full', async () => {
  const big = Array.from({ length: 400 }, (_, at) =>
    put(`big${String(at).padStart(3, '0')}`, `{${at}}`.padEnd(300, '.')),
  )
  await writeAndCrash([
    ...numbered(2),
    big,
    ...numbered(5).map((batch) => [put(`after${String(batch[0]?.key)}`, 'x')]),
  ])
  flip(logPath(), find(logPath(), '{200}'))
  const check = await checkLogs(shard)
  assert.equal(check.damages.length, 1)
  const found = await recover()
  const kept = [...found.keys()].filter((name) => name.startsWith('big'))
  assert.ok(kept.length > 90 && kept.length <= 200, `${kept.length}`)
  assert.deepEqual(
    kept,
    big.slice(0, kept.length).map((operation) => String(operation.key)),
  )
  assert.equal(check.operationsLost, 400 - kept.length)
  assert.equal(found.size, 2 + kept.length + 5)
})

test('damage in the last record counts as damage and not as a crash, but the loss is unknown', async () => {
  await writeAndCrash(numbered(20))
  flip(logPath(), find(logPath(), '<19>'))
  const check = await checkLogs(shard)
  assert.equal(check.damages.length, 1)
  assert.equal(check.operationsLost, undefined)
  assert.equal((await recover()).size, 19)
})

test('beside damage an unfinished batch at the end still never happened', async () => {
  const last = Array.from({ length: 300 }, (_, at) => put(`last${at}`, `[${at}]`.padEnd(300, '.')))
  await writeAndCrash([...numbered(20), last])
  flip(logPath(), find(logPath(), '<10>'))
  const bytes = readFileSync(logPath())
  writeFileSync(logPath(), bytes.subarray(0, bytes.length - 100))
  const found = await recover()
  assert.equal(found.size, 19)
})

test('several faults in several blocks are each named', async () => {
  await writeAndCrash(numbered(500))
  for (const name of ['<10>', '<11>', '<300>', '<450>']) flip(logPath(), find(logPath(), name))
  const check = await checkLogs(shard)
  // Two adjacent bad records are one gap.
  assert.equal(check.damages.length, 3)
  assert.equal(check.operationsLost, 4)
  assert.equal((await recover()).size, 496)
})

test('a crash between opening and applying what was salvaged loses nothing', async () => {
  await writeAndCrash(numbered(200))
  flip(logPath(), find(logPath(), '<10>'))
  const first = await checkLogs(shard)
  const store = open()
  await store.open()
  await store.close()
  assert.equal(readdirSync(shard).includes('000003.log'), false)
  const second = await checkLogs(shard)
  assert.equal(second.salvaged.length, first.salvaged.length)
  assert.deepEqual(second.damages, first.damages)
  assert.equal((await recover()).size, 199)
})

test("data that LevelDB dropped is found in LevelDB's own log after opening", async () => {
  await writeAndCrash(numbered(200))
  flip(logPath(), find(logPath(), '<10>'))
  const store = open()
  await store.open()
  const lines = await droppedLines(shard)
  assert.ok(lines.length > 0)
  assert.ok((await store.range(everything)).length < 150)
  assert.match(lines[0]!, /dropping \d+ bytes; Corruption: checksum mismatch/)
  await store.close()
  await store.open()
  assert.deepEqual(await droppedLines(shard), [])
  await store.close()
})

test('logs that are already in tables are not read', async () => {
  await writeAndCrash(numbered(50))
  const old = readFileSync(logPath())
  await recover()
  const store = open()
  await store.open()
  await store.write([put('key1', 'newer')], { sync: true })
  await store.close()
  old[100]! ^= 1
  writeFileSync(join(shard, '000001.log'), old)
  const check = await checkLogs(shard)
  assert.deepEqual([check.damages, check.salvaged], [[], []])
  assert.equal((await recover()).get('key1'), 'newer')
})

const garbage = (length: number): Buffer =>
  Buffer.from(Array.from({ length }, (_, at) => ((at + 7) * 2_654_435_761) >>> 13))

test('garbage after the last synced record is normal after a power loss and is cut off, and LevelDB reports nothing', async () => {
  const lengths = [3, 8, 100, 511, 700, 40_000]
  for (const [at, length] of lengths.entries()) {
    await writeAndCrash(at === 0 ? numbered(20) : [])
    const bytes = readFileSync(logPath())
    writeFileSync(logPath(), Buffer.concat([bytes, garbage(length)]))
    const check = await checkLogs(shard)
    assert.deepEqual([check.damages, check.salvaged], [[], []], `${length} bytes`)
    assert.deepEqual(check.tornEnds, [
      { file: logPath(), offset: bytes.length, bytes: length, isLong: length > 32_768 },
    ])
    assert.deepEqual(readFileSync(join(shard, 'torn-end')), garbage(length))
    assert.equal((await recover()).size, 20)
    assert.deepEqual(await droppedLines(shard), [])
    assert.equal(readdirSync(shard).includes('damaged'), false)
  }
})

test('a record of many blocks is torn if sectors of it are missing, even if later ones were written', async () => {
  await writeAndCrash([...numbered(20), [put('torn', 'x'.repeat(100_000))]])
  const bytes = readFileSync(logPath())
  const start = bytes.indexOf('xxxx') - 7 - 20
  for (const from of [40_960, 70_144]) {
    const torn = Buffer.from(bytes)
    garbage(1_024).copy(torn, from)
    writeFileSync(logPath(), torn)
    const check = await checkLogs(shard)
    assert.deepEqual([check.damages, check.salvaged], [[], []], `from ${from}`)
    const [end] = check.tornEnds
    assert(end !== undefined && end.offset <= start && end.offset > start - 20)
  }
  assert.equal((await recover()).size, 20)
  assert.deepEqual(await droppedLines(shard), [])
})

test('a changed byte in the record that was synced last is damage, wherever it is', async () => {
  await writeAndCrash(numbered(20, 700))
  const bytes = readFileSync(logPath())
  const start = readFileSync(logPath()).indexOf('<19>') - 7 - 12 - 10
  for (let at = start + 8; at < bytes.length; at += 61) {
    const changed = Buffer.from(bytes)
    changed[at]! ^= 0x5a
    writeFileSync(logPath(), changed)
    const check = await checkLogs(shard)
    assert.equal(check.damages.length, 1, `byte ${at}`)
    rmSync(join(shard, 'damaged'), { recursive: true })
  }
})

test('the error for a missing log that the list of files names has the name of the log', async () => {
  await writeAndCrash(numbered(50))
  const path = logPath()
  const bytes = readFileSync(path)
  rmSync(path)
  await assert.rejects(checkLogs(shard), {
    name: 'ShardDamaged',
    message: `${path}: the log is missing, and the MANIFEST names it`,
  })
  writeFileSync(path, bytes)
  assert.equal((await recover()).size, 50)
})

test('a damaged or missing list of files is refused, and nothing is changed', async () => {
  await writeAndCrash(numbered(50))
  await recover()
  const manifest = readdirSync(shard).find((name) => name.startsWith('MANIFEST'))!
  const bytes = readFileSync(join(shard, manifest))
  flip(join(shard, manifest), 20)
  await assert.rejects(checkLogs(shard), /MANIFEST-\d+, byte 0: the list of files is damaged: /)
  await assert.rejects(open().open())
  writeFileSync(join(shard, manifest), bytes)
  const current = readFileSync(join(shard, 'CURRENT'))
  rmSync(join(shard, 'CURRENT'))
  await assert.rejects(
    checkLogs(shard),
    /CURRENT: the file is missing, and there are tables beside it/,
  )
  writeFileSync(join(shard, 'CURRENT'), current)
  assert.equal((await recover()).size, 50)
})

test('the error for a CURRENT that names no list of files has its name, and no other file is cut off', async () => {
  await writeAndCrash(numbered(50))
  await recover()
  const path = join(shard, 'CURRENT')
  const sound = readFileSync(path)
  const [table = ''] = readdirSync(shard).filter((name) => name.endsWith('.ldb'))
  const before = readFileSync(join(shard, table))
  for (const text of ['', '\0'.repeat(16), '\n', '..\n', `${table}\n`, sound.toString().trim()]) {
    writeFileSync(path, text)
    await assert.rejects(
      checkLogs(shard),
      { name: 'ShardDamaged', message: `${path}: does not name a MANIFEST` },
      JSON.stringify(text),
    )
  }
  assert.deepEqual(readFileSync(join(shard, table)), before)
  writeFileSync(path, sound)
  assert.equal((await recover()).size, 50)
})

/** Writes batches and closes the shard, with everything in the log. */
async function writeAndClose(batches: readonly (readonly StoreOperation[])[]): Promise<void> {
  const store = open()
  await store.open()
  for (const batch of batches) await store.write(batch, { sync: true })
  await store.close()
}

test('after a clean close every loss at the end of a log is damage, wherever it begins, also in the next check', async () => {
  await writeAndClose([...numbered(20), [put('big', 'b'.repeat(70_000))]])
  const path = logPath()
  const whole = readFileSync(path)
  const lastRecord = find(path, '<19>') - 7 - 12 - 9
  const ends: Buffer[] = [0, 5, lastRecord, lastRecord + 100, 32_768, whole.length - 1].map(
    (size) => whole.subarray(0, size),
  )
  ends.push(Buffer.concat([whole, garbage(600)]))
  for (const from of [lastRecord, whole.length - 1_000]) ends.push(Buffer.from(whole).fill(0, from))
  for (const [at, end] of ends.entries()) {
    writeFileSync(path, end)
    const check = await checkLogs(shard)
    assert.equal(check.damages.length > 0, true, `end ${at}`)
    assert.deepEqual(check.tornEnds, [])
    assert.deepEqual((await checkLogs(shard)).damages, check.damages)
    rmSync(join(shard, 'damaged'), { recursive: true })
  }
  writeFileSync(path, whole.subarray(0, lastRecord))
  assert.equal((await recover()).size, 19)
  assert.deepEqual((await checkLogs(shard)).damages, [])
})

test('after a clean close a cut MANIFEST or a missing log is refused, although no list of files names the log', async () => {
  await writeAndClose(numbered(20))
  const [name = ''] = readdirSync(shard).filter((each) => each.startsWith('MANIFEST'))
  const manifest = readFileSync(join(shard, name))
  writeFileSync(join(shard, name), manifest.subarray(0, -1))
  await assert.rejects(checkLogs(shard), /list of files is damaged: the end was not written/)
  writeFileSync(join(shard, name), manifest)
  writeFileSync(join(shard, '000099.log'), 'begun after the MANIFEST was written last')
  await recordClose(shard)
  rmSync(logPath())
  await assert.rejects(checkLogs(shard), /000099.log: the log is missing, and was there when/)
})

test('a clean close says nothing about what was written after the next opening', async () => {
  await writeAndClose(numbered(20))
  await writeAndCrash(numbered(2))
  const bytes = readFileSync(logPath())
  writeFileSync(logPath(), bytes.subarray(0, -1))
  const check = await checkLogs(shard)
  assert.deepEqual([check.damages.length, check.tornEnds.length], [0, 1])
})

test('the caller knows of a torn end before it is cut off', async () => {
  await writeAndCrash(numbered(20))
  const bytes = readFileSync(logPath())
  writeFileSync(logPath(), bytes.subarray(0, -1))
  await assert.rejects(
    checkLogs(shard, { onTornEnd: () => Promise.reject(new Error('full')) }),
    /full/,
  )
  assert.equal(readFileSync(logPath()).length, bytes.length - 1)
})

function keyFault(key: Buffer): string | undefined {
  return String(key) === 'key7' ? 'belongs to shard 3' : undefined
}

test('a log with a key that the shard cannot have is refused and not changed', async () => {
  await writeAndCrash(numbered(20))
  const path = logPath()
  writeFileSync(path, readFileSync(path).subarray(0, -1))
  const before = readFileSync(path)
  await assert.rejects(
    checkLogs(shard, { keyFault }),
    (error: Error) =>
      error.message.startsWith(`${path}, byte `) && error.message.endsWith(': belongs to shard 3'),
  )
  assert.deepEqual(readFileSync(path), before)
})
