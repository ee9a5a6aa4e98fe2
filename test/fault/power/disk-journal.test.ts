import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DiskJournal, type DiskKind } from './disk-journal.ts'

const kinds: readonly DiskKind[] = ['ext4', 'posix']

function readLines(kind: DiskKind, lines: readonly string[]): DiskJournal {
  return new DiskJournal(`${lines.join('\n')}\n`, kind)
}

test('a directory sync that began before a name was made does not make it durable', () => {
  const earlier = 'L 7 1 CURRENT=8'
  const later = ['N 7 000144.ldb 9', 'L 7 2 CURRENT=8 000144.ldb=9', 'D 7 2']
  for (const kind of kinds) {
    const { durable, changes } = readLines(kind, [earlier, ...later, 'D 7 1']).directory('7')
    assert.deepEqual([...durable.keys()], ['CURRENT', '000144.ldb'])
    assert.deepEqual(changes, [])
  }
})

test('a name that is made while its directory is synced may still be undone', () => {
  for (const kind of kinds) {
    const lines = ['N 7 one 8', 'L 7 1 one=8', 'N 7 two 9', 'D 7 1']
    const { durable, changes } = readLines(kind, lines).directory('7')
    assert.deepEqual([...durable], [['one', '8']])
    assert.deepEqual(changes, [{ name: 'two', inode: '9', at: 2 }])
  }
})

test('a directory sync that failed makes nothing durable', () => {
  for (const kind of kinds) {
    const { durable, changes } = readLines(kind, ['N 7 one 8', 'L 7 1 one=8']).directory('7')
    assert.equal(durable.size, 0)
    assert.equal(changes.length, 1)
  }
})

test('a sync of any file makes the names of all directories durable on a disk like ext4, and of none on a POSIX disk', () => {
  for (const sync of [['L 7 1', 'D 7 1'], ['S 10 0']]) {
    const lines = ['N 5 one 8', 'N 5 one 0', 'N 5 two 9', ...sync, 'N 5 three 11']
    const ext4 = readLines('ext4', lines).directory('5')
    assert.deepEqual([...ext4.durable], [['two', '9']])
    assert.deepEqual(
      ext4.changes.map(({ name }) => name),
      ['three'],
    )
    assert.equal(readLines('posix', lines).directory('5').changes.length, 4)
  }
})

test('a directory sync does not undo a name that a disk like ext4 has committed since it began', () => {
  const lines = ['N 7 one 8', 'L 7 1 one=8', 'N 7 two 9', 'S 10 0', 'D 7 1']
  assert.deepEqual([...readLines('ext4', lines).directory('7').durable.keys()], ['one', 'two'])
  const { durable, changes } = readLines('posix', lines).directory('7')
  assert.deepEqual([...durable.keys()], ['one'])
  assert.equal(changes.length, 1)
})
