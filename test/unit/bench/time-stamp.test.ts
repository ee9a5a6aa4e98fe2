import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sampleUpdate, seededRandom } from '../../../bench/sample-updates.ts'
import { readStamp, readStamps, stampPlace, writeStamp } from '../../../bench/time-stamp.ts'

test('every stamped update of a response has its stamp, and one without a stamp has none', () => {
  const random = seededRandom(1)
  const updates = [11, 22].map((us) => {
    const update = Buffer.from(sampleUpdate(random, us))
    writeStamp(update, stampPlace(update), us)
    return update
  })
  const plain = Buffer.from(sampleUpdate(random, 3))
  const [one = plain, other = plain] = updates
  assert.deepEqual(readStamps(Buffer.concat([plain, one, plain, other])), [11, 22])
  assert.equal(readStamp(Buffer.concat([one, other]), one.length), 22)
  assert.equal(readStamp(plain), undefined)
  assert.deepEqual(readStamps(plain), [])
})
