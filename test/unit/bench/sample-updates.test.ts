import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sampleUpdate, seededRandom, updateBytes } from '../../../bench/sample-updates.ts'
import { checkUpdate } from '../../support/producers/update-verdict.ts'

test('every sample update has 300 bytes and is accepted by the server', () => {
  const random = seededRandom(1)
  for (let chatId = 1; chatId < 10_000_000; chatId *= 3) {
    const update = Buffer.from(sampleUpdate(random, chatId))
    assert.equal(update.length, updateBytes)
    assert.equal(checkUpdate(update).text.length, updateBytes - 2)
  }
})

test('the same seed gives the same updates', () => {
  assert.equal(sampleUpdate(seededRandom(7), 1), sampleUpdate(seededRandom(7), 1))
  assert.notEqual(sampleUpdate(seededRandom(7), 1), sampleUpdate(seededRandom(8), 1))
})
