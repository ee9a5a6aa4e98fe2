import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  backupFrameBytesMax,
  BackupFrames,
  fieldsFrame,
  fieldsOf,
  recordsFrame,
  recordsOf,
} from '../../../../src/features/backup/backup-frame.ts'
import { framesIn } from '../../../support/store/small-backup.ts'

const entries = ['a', 'bb', ''].map((text, at) => ({
  key: Buffer.from(`key ${at}`),
  value: Buffer.from(text),
}))

test('frames are the same however their bytes are split', () => {
  const bytes = Buffer.concat([
    fieldsFrame('H', { format: 1, began: 5 }),
    recordsFrame(entries),
    recordsFrame([]),
    fieldsFrame('E', { records: 3, crc: 7 }),
  ])
  for (const pieceBytes of [1, 2, 7, 64, bytes.length]) {
    const frames = new BackupFrames()
    const found = []
    for (let at = 0; at < bytes.length; at += pieceBytes) {
      found.push(...frames.take(bytes.subarray(at, at + pieceBytes)))
    }
    assert(frames.isAtEnd)
    assert.deepEqual(
      found.map(({ kind }) => kind),
      ['H', 'R', 'R', 'E'],
    )
    assert.deepEqual(Buffer.concat(found.map((frame) => frame.bytes)), bytes)
    assert.deepEqual(recordsOf(found[1]!), entries)
    assert.deepEqual(recordsOf(found[2]!), [])
    assert.deepEqual(fieldsOf(found[3]!, ['records', 'crc']), { records: 3, crc: 7 })
  }
})

test('a frame of an unknown kind, or of more bytes than any has, is refused before it is read', () => {
  const unknown = recordsFrame(entries)
  unknown[0] = 0x51
  assert.throws(() => framesIn(unknown), /expected a frame of a known kind/)
  const large = recordsFrame(entries)
  large.writeUInt32BE(backupFrameBytesMax + 1, 1)
  assert.throws(() => framesIn(large.subarray(0, 5)), /at most 8388608 bytes, got 8388609/)
})

test('records with lengths beyond their frame are refused', () => {
  const frame = recordsFrame(entries)
  const [whole] = framesIn(frame)
  assert.equal(recordsOf(whole!).length, 3)
  for (const at of [5, 9]) {
    const broken = Buffer.from(frame)
    broken.writeUInt32BE(1_000, at)
    assert.throws(() => recordsOf(framesIn(broken)[0]!), /expected a whole record/)
  }
  const cut = frame.subarray(0, 5 + 3)
  cut.writeUInt32BE(3, 1)
  assert.throws(() => recordsOf(framesIn(cut)[0]!), /expected the lengths of a record/)
})

test('a field that is missing or no whole number is named', () => {
  for (const fields of [{}, { crc: '7' }, { crc: -1 }, { crc: 1.5 }, []]) {
    const [frame] = framesIn(fieldsFrame('E', fields))
    assert.throws(() => fieldsOf(frame!, ['crc']), /expected the number crc in a frame E/)
  }
})
