import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BackupCheck, SectionCheck } from '../../../../src/features/backup/backup-check.ts'
import {
  BackupFrames,
  backupMagic,
  fieldsFrame,
} from '../../../../src/features/backup/backup-frame.ts'
import {
  backupBytes,
  framesIn,
  sectionBytes,
  sectionsOf,
} from '../../../support/store/small-backup.ts'

const sections = sectionsOf(2, [101, 102, 103])
const whole = backupBytes(sections)

/** Returns whether all of these bytes are taken for a whole backup. */
function isWhole(bytes: Buffer): boolean {
  const magic = bytes.subarray(0, backupMagic.length)
  const check = new BackupCheck(magic)
  const frames = new BackupFrames()
  try {
    for (const frame of frames.take(bytes.subarray(magic.length))) check.take(frame)
  } catch {
    return false
  }
  return check.isComplete && frames.isAtEnd
}

test('a whole backup is one, and says what is in it', () => {
  assert(isWhole(whole))
  const check = new BackupCheck(backupMagic)
  for (const frame of framesIn(whole.subarray(backupMagic.length))) check.take(frame)
  assert.equal(check.records, 9)
  assert.equal(check.began, 1_800_000_000)
  assert.deepEqual(check.sections, [
    { shard: 0, shards: 2, below: 4_000_000, from: 0 },
    { shard: 1, shards: 2, below: 4_000_001, from: 1 },
  ])
})

test('a backup that ends early is never taken for a whole one, wherever it ends', () => {
  for (let end = backupMagic.length; end < whole.length; end++) {
    assert(!isWhole(whole.subarray(0, end)), `${end} of ${whole.length} bytes`)
  }
  assert(!isWhole(Buffer.concat([whole, whole.subarray(backupMagic.length)])))
  assert(!isWhole(Buffer.concat([whole, Buffer.from('S')])))
})

test('a backup with a changed bit is never taken for a whole one, whichever bit it is', () => {
  for (let at = 0; at < whole.length; at++) {
    for (const bit of [1, 16]) {
      const changed = Buffer.from(whole)
      changed[at] = changed[at]! ^ bit
      assert(!isWhole(changed), `byte ${at}`)
    }
  }
})

test('sections that are missing, doubled, in another order or of different backups are refused', () => {
  const [first, second] = sections
  const of = (shard: number, shards = 2): Buffer =>
    sectionBytes(shard === 0 ? first! : second!, { shard, shards })
  const orders = [[of(1)], [of(0), of(0)], [of(1), of(0)], [of(0), of(1, 4)]]
  for (const order of orders) {
    const check = new BackupCheck(backupMagic)
    check.take(framesIn(fieldsFrame('H', { format: 1, began: 0 }))[0]!)
    const take = (): void => {
      for (const frame of framesIn(Buffer.concat(order))) check.take(frame)
    }
    assert.throws(take, /expected shard \d of \d, got \d of \d/)
  }
})

test('a backup of a server with added types has their list, and one without has none', () => {
  const typed = new BackupCheck(backupMagic)
  const head = { format: 2, began: 0, types: ['order:order.id', 'ping'] }
  typed.take(framesIn(fieldsFrame('H', head))[0]!)
  assert.deepEqual(typed.types, ['order:order.id', 'ping'])
  const plain = new BackupCheck(backupMagic)
  plain.take(framesIn(fieldsFrame('H', { format: 1, began: 0 }))[0]!)
  assert.deepEqual(plain.types, [])
  for (const types of [undefined, [], ['Order'], 'ping']) {
    const [odd] = framesIn(fieldsFrame('H', { format: 2, began: 0, types }))
    assert.throws(() => new BackupCheck(backupMagic).take(odd!), /expected the added types/)
  }
})

test('a backup of a later format is refused, and the formats are named', () => {
  const check = new BackupCheck(backupMagic)
  const [head] = framesIn(fieldsFrame('H', { format: 3, began: 0 }))
  assert.throws(
    () => check.take(head!),
    /has format 3, and this version of Postbote reads formats 1 and 2/,
  )
})

test('a section without its end is not complete', () => {
  const frames = framesIn(sectionBytes(sections[0]!, { shard: 0, shards: 2 }))
  const check = new SectionCheck()
  for (const frame of frames.slice(0, -1)) check.take(frame)
  assert(!check.isComplete)
  check.take(frames.at(-1)!)
  assert(check.isComplete)
  assert.throws(() => check.take(frames[1]!), /another frame than R/)
})
