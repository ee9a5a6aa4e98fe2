import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FleetRows } from '../../../../src/features/fleet/fleet-rows.ts'
import { queueIdOf, updateIdEnd } from '../../../../src/shard/records/record-keys.ts'

test('a row keeps every value between the rows of other queues, over more than one block', () => {
  const rows = new FleetRows()
  const botIds = Array.from({ length: 600 }, (_, nth) => 2 ** 52 - 1 - nth)
  for (const [nth, botId] of botIds.entries()) {
    const row = rows.of(queueIdOf(botId, nth % 2 === 0))
    row.username = `bot_${nth}`
    row.pendingCount = updateIdEnd - nth
    row.pendingBytes = 2 ** 50 + nth
    row.floor = updateIdEnd - 1 - nth
    row.oldestId = updateIdEnd - 2 - nth
    row.oldestAtS = 1_800_000_000 + nth
    row.deadLetters = nth
    row.webhookHost = nth % 3 === 0 ? `h${nth % 9}.example` : undefined
    row.isPaused = nth % 5 === 0
    row.isOldestDue = nth % 7 === 0
  }
  for (const [nth, row] of [...rows].entries()) {
    assert.equal(row.queue, queueIdOf(botIds[nth]!, nth % 2 === 0))
    assert.equal(row.username, `bot_${nth}`)
    assert.deepEqual(
      [row.pendingCount, row.pendingBytes, row.floor, row.oldestId],
      [updateIdEnd - nth, 2 ** 50 + nth, updateIdEnd - 1 - nth, updateIdEnd - 2 - nth],
    )
    assert.deepEqual([row.oldestAtS, row.deadLetters], [1_800_000_000 + nth, nth])
    assert.deepEqual(
      [row.webhookHost, row.isPaused, row.isOldestDue],
      [nth % 3 === 0 ? `h${nth % 9}.example` : undefined, nth % 5 === 0, nth % 7 === 0],
    )
  }
  assert.equal(rows.places, 600)
})

test('a username of any length and with any letters is kept until the bot is removed', () => {
  const rows = new FleetRows()
  const row = rows.of(100)
  assert.deepEqual([row.isRegistered, row.username], [false, undefined])
  for (const name of ['a', 'b'.repeat(32), 'c'.repeat(33), 'd'.repeat(64), 'bücher_bot', '', 'e']) {
    row.username = name
    assert.deepEqual([row.isRegistered, row.username, row.isEmpty], [true, name, false])
  }
  row.username = undefined
  assert.deepEqual([row.isRegistered, row.username, row.isEmpty], [false, undefined, true])
})

test('the prefix of a username is found in any case, of short names and of long ones', () => {
  const rows = new FleetRows()
  for (const tail of ['', 'x'.repeat(40)]) {
    const row = rows.of(100)
    row.username = `Az_09${tail}`
    for (const prefix of ['', 'a', 'az_0', 'az_09']) assert(row.hasNamePrefix(prefix), prefix)
    for (const prefix of ['A', 'z', 'az\x7f', 'az_09y', 'é']) assert(!row.hasNamePrefix(prefix))
  }
  rows.remove(100)
  assert(!rows.of(101).hasNamePrefix('a'))
})

test('a word of a first name is found in any case, of short names and of long ones', () => {
  const rows = new FleetRows()
  const find = (text: string): boolean =>
    rows.of(100).hasWordPrefix(Buffer.from(text.toLowerCase()))
  for (const tail of ['', ' and more words than a row has room for']) {
    rows.of(100).firstName = `Süße ТЕНЬ shop${tail}`
    for (const word of ['süße', 'SÜ', 'тень', 'shop', 'süße тень s']) assert(find(word), word)
    for (const word of ['üße', 'hop', 'shopx', 'тенm', 'süße  ']) assert(!find(word), word)
  }
  rows.of(100).firstName = 'A'
  assert(find('a') && !find('and'), 'a long name has left')
  for (const name of ['Another', 'Another name that is too long for a row']) {
    rows.of(101).firstName = name
    rows.remove(101)
    assert(!rows.of(102).hasWordPrefix(Buffer.from('another')))
    rows.remove(102)
  }
})

test('the place of a removed row is used again and shows nothing of that row', () => {
  const rows = new FleetRows()
  for (const queue of [100, 101, 102]) {
    const row = rows.of(queue)
    row.username = 'x'.repeat(40)
    row.pendingCount = 5
    row.oldestAtS = 5
    row.isPaused = true
  }
  rows.remove(101)
  assert.equal(rows.find(101), undefined)
  assert.equal(rows.at(1), undefined)
  assert.deepEqual(
    [...rows].map(({ queue }) => queue),
    [100, 102],
  )
  const row = rows.of(103)
  assert.deepEqual([row.isEmpty, row.oldestAtS, row.username], [true, undefined, undefined])
  assert.deepEqual([rows.places, rows.at(1)?.queue], [3, 103])
})

test('an empty row is one without a bot, pending updates, dead letters, a webhook and a pause', () => {
  const rows = new FleetRows()
  const row = rows.of(100)
  row.floor = 1_000
  assert(row.isEmpty)
  row.webhookHost = 'shop.example'
  assert(!row.isEmpty)
  row.webhookHost = undefined
  row.isPaused = true
  assert(!row.isEmpty)
  row.isPaused = false
  row.deadLetters = 1
  assert(!row.isEmpty)
})
