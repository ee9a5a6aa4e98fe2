import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { crc32c, findFlippedBit } from '../../../src/leveldb-files/crc32c.ts'
import { isTableBlock, levelTable } from '../../../src/leveldb-files/level-table.ts'
import type { TableBlock } from '../../../src/leveldb-files/table-block.ts'
import { unpackSnappy } from '../../../src/leveldb-files/unpack-snappy.ts'
import { copyKey, kinds } from '../../../src/shard/kinds.ts'
import { updateIdOfKey } from '../../../src/shard/records/record-keys.ts'
import { shardRecords } from '../../../src/shard/shard-records.ts'
import type { StoreOperation } from '../../../src/store/store.ts'
import { temporaryDirectory } from '../../support/kit/temporary-directory.ts'
import {
  filesWith,
  levelShardBot,
  updateOperation,
  writeLevel,
} from '../../support/store/level-shard.ts'

const updates = 1_000

/**
 * Creates a shard and returns its only table: updates 0 to 999, the first of them written twice, and a deleted one.
 */
async function table(t: TestContext, text?: (id: number) => string): Promise<Buffer> {
  const operations = Array.from({ length: updates }, (_, id) => updateOperation(id, text?.(id)))
  const first = [updateOperation(0), updateOperation(9_999)]
  const deletion = { type: 'del', key: kinds.update.key(levelShardBot, 9_999) } as const
  return tableOf(t, [first, operations, [deletion]])
}

async function tableOf(
  t: TestContext,
  batches: readonly (readonly StoreOperation[])[],
): Promise<Buffer> {
  const directory = join(temporaryDirectory(t), 'shard')
  await writeLevel(directory, batches)
  await writeLevel(directory, [])
  const [path = ''] = filesWith(directory, '.ldb')
  return readFileSync(path)
}

function blocksOf(bytes: Buffer): TableBlock[] {
  return [...levelTable(bytes, shardRecords)].filter(isTableBlock)
}

/** Returns the ids of the updates, without the deleted one. */
function idsOf(blocks: readonly TableBlock[]): number[] {
  const ids = blocks.flatMap(({ entries }) => entries.map(({ key }) => updateIdOfKey(key)))
  return [...new Set(ids)].filter((id) => id < updates)
}

function keysOf(blocks: readonly TableBlock[]): string[] {
  return blocks.flatMap(({ entries }) => entries.map(({ key }) => key.toString('hex')))
}

function entriesText(blocks: readonly TableBlock[]): string {
  return blocks
    .flatMap(({ entries }) =>
      entries.map(
        ({ key, sequence, value }) => `${key.toString('hex')}${sequence}${String(value)}`,
      ),
    )
    .join()
}

const everyId = Array.from({ length: updates }, (_, id) => id)

for (const [form, text] of [
  ['packed', undefined],
  ['unpacked', (id: number) => Buffer.from([...crcNoise(id)]).toString('latin1')],
] as const) {
  test(`${form} blocks of a table of LevelDB are read to the last key, the newest of each first`, async (t) => {
    const bytes = await table(t, text)
    const parts = [...levelTable(bytes, shardRecords)]
    assert.deepEqual(
      parts.filter((part) => part.what !== undefined),
      [],
    )
    const blocks = blocksOf(bytes)
    assert(blocks.length > 2)
    assert.deepEqual(idsOf(blocks), everyId)
    const entries = blocks.flatMap((block) => block.entries)
    const [newest, older] = entries
    assert(newest !== undefined && older !== undefined)
    assert.equal(updateIdOfKey(older.key), 0)
    assert(newest.sequence > older.sequence)
    assert.deepEqual(
      entries.slice(-2).map(({ isDeletion }) => isDeletion),
      [true, false],
    )
  })

  test(`in a table without its footer the ${form} blocks are found by their checksums`, async (t) => {
    const bytes = await table(t, text)
    const blocks = blocksOf(bytes)
    const cut = bytes.subarray(0, bytes.length - 48)
    assert(entriesText(blocksOf(cut)) === entriesText(blocks))
    // The cut is inside the last data block.
    const last = blocks.at(-1)
    assert(last !== undefined)
    const found = blocksOf(bytes.subarray(0, last.offset + last.length - 300))
    assert(entriesText(found.slice(0, -1)) === entriesText(blocks.slice(0, -1)))
    const rest = found.at(-1)
    assert.equal(rest?.what, 'the block is cut off')
    assert(rest.entries.length > 0, 'nothing of the cut block was read')
    assert.equal(keysOf([rest])[0], keysOf([last])[0])
  })

  test(`a zeroed sector in a table without an index costs only its own ${form} block`, async (t) => {
    const bytes = await table(t, text)
    const blocks = blocksOf(bytes)
    const [, second] = blocks
    assert(second !== undefined)
    bytes.fill(0, second.offset + 600, second.offset + 1_112)
    bytes.fill(0, bytes.length - 48)
    const found = blocksOf(bytes)
    assert.deepEqual(
      found.map(({ offset }) => offset),
      blocks.map(({ offset }) => offset),
    )
    assert.equal(found[1]?.isTrusted, false)
    assert.equal(keysOf(found.slice(1, 2))[0], keysOf([second])[0])
    assert(entriesText(found.toSpliced(1, 1)) === entriesText(blocks.toSpliced(1, 1)))
  })
}

test('after a zeroed sector the search also finds a block that begins with the copy of a damaged record', async (t) => {
  const copies = Array.from({ length: updates }, (_, id) => {
    const operation = updateOperation(id, Buffer.from([...crcNoise(id)]).toString('latin1'))
    return { ...operation, key: copyKey(operation.key) }
  })
  const bytes = await tableOf(t, [copies])
  const blocks = blocksOf(bytes)
  const [, second] = blocks
  assert(second !== undefined && blocks.length > 2)
  bytes.fill(0, second.offset + 600, second.offset + 1_112)
  bytes.fill(0, bytes.length - 48)
  assert(entriesText(blocksOf(bytes).slice(2)) === entriesText(blocks.slice(2)))
})

test('the CRC detects a flipped bit wherever it is', () => {
  const bytes = Buffer.from('the bytes of a block, with a flipped bit')
  const crc = crc32c(bytes)
  assert.equal(findFlippedBit(bytes, crc), undefined)
  for (let bit = 0; bit < bytes.length * 8; bit++) {
    const flipped = Buffer.from(bytes)
    flipped[bit >>> 3]! ^= 1 << (bit & 7)
    assert.deepEqual(findFlippedBit(flipped, crc), { at: bit >>> 3, mask: 1 << (bit & 7) })
    flipped[bit >>> 3]! ^= 1 << ((bit + 3) & 7)
    assert.equal(findFlippedBit(flipped, crc), undefined)
  }
})

test('a flipped bit in any data block is repaired and reported', async (t) => {
  const bytes = await table(t)
  const blocks = blocksOf(bytes)
  const last = blocks.at(-1)
  assert(last !== undefined)
  const all = entriesText(blocks)
  for (let at = 0; at < last.offset + last.length + 5; at += 197) {
    const damaged = Buffer.from(bytes)
    damaged[at]! ^= 1 << (at & 7)
    const found = blocksOf(damaged)
    assert(entriesText(found) === all, `byte ${at}`)
    assert.equal(found.filter(({ what }) => what !== undefined).length, 1)
  }
})

test('an update in a damaged block is never taken for its deletion', async (t) => {
  const bytes = await table(t, (id) => Buffer.from([...crcNoise(id)]).toString('latin1'))
  for (let at = 0; at < 60; at++) {
    const damaged = Buffer.from(bytes)
    damaged[at]! ^= 1
    // More bits, so that the damage cannot be undone.
    damaged[at + 50]! ^= 6
    const deletions = blocksOf(damaged).flatMap(({ entries }) =>
      entries.filter(({ key, isDeletion }) => isDeletion && updateIdOfKey(key) !== 9_999),
    )
    assert.deepEqual(deletions, [], `byte ${at}`)
  }
})

test('a flipped bit anywhere after the data blocks is reported, and no block is lost', async (t) => {
  const bytes = await table(t)
  const blocks = blocksOf(bytes)
  const last = blocks.at(-1)
  assert(last !== undefined)
  for (let at = last.offset + last.length + 5; at < bytes.length; at += 5) {
    const damaged = Buffer.from(bytes)
    damaged[at]! ^= 1 << (at & 7)
    const found = blocksOf(damaged)
    assert.deepEqual(idsOf(found), everyId, `byte ${at}`)
    const faults = [...levelTable(damaged, shardRecords)].filter(({ what }) => what !== undefined)
    assert(faults.length > 0, `byte ${at}`)
  }
})

test('a table whose blocks end with deletions, which its index then names, is sound', async (t) => {
  const deletions = Array.from({ length: 10 * updates }, (_, id) => {
    return { type: 'del', key: kinds.update.key(levelShardBot, id) } as const
  })
  const parts = [...levelTable(await tableOf(t, [deletions]), shardRecords)]
  assert.deepEqual(
    parts.flatMap(({ what }) => what ?? []),
    [],
  )
  const blocks = parts.filter(isTableBlock)
  assert(blocks.length > 1, 'several blocks')
  assert.equal(keysOf(blocks).length, deletions.length)
})

test('damage in the middle of a packed block leaves what was packed before it', () => {
  // "abcabcabcabc": a literal of three bytes, then a copy of nine bytes that begins three bytes before the end.
  const packed = Buffer.from([12, 2 << 2, 0x61, 0x62, 0x63, 1 | (5 << 2), 3])
  assert.deepEqual(unpackSnappy(packed), { bytes: Buffer.from('abcabcabcabc'), isWhole: true })
  assert.equal(String(unpackSnappy(packed.subarray(0, 6)).bytes), 'abc')
  packed[6] = 4
  assert.deepEqual(unpackSnappy(packed), { bytes: Buffer.from('abc'), isWhole: false })
  assert.equal(unpackSnappy(Buffer.alloc(0)).isWhole, false)
})

/** A text that cannot be compressed, the same for each run. */
function* crcNoise(id: number): Generator<number> {
  for (let at = 0; at < 90; at++) {
    yield 33 + (crc32c(Buffer.from(`${id}/${at}`)) % 90)
  }
}
