import assert from 'node:assert/strict'
import fc from 'fast-check'
import { allowedUpdatesOfPoll } from '../../../src/queue/allowed-updates.ts'
import { deriveOrderingKey, keysMeantBy } from '../../../src/queue/check/ordering-key.ts'
import { assertTelegramFields } from '../../../src/queue/check/telegram-fields.ts'
import { lifeS } from '../../../src/queue/check/time-to-live.ts'
import {
  allTypes,
  contractTypes,
  defaultTypesMask,
  isInMask,
  maskOfNumbers,
  numbersIn,
  setAddedTypes,
  typesOf,
  updateTypeNumber,
  updateTypes,
} from '../../../src/kit/update-types.ts'
import { typesOfReference } from '../../../src/kit/added-type.ts'
import { accept, refusalOf } from '../../support/producers/update-verdict.ts'
import {
  sixtyFourTypes,
  testOfSixtyFourTypes as test,
} from '../../support/queue/sixty-four-types.ts'

const typeNumber = fc.nat(63)

test('a mask has the types that it was made of, whatever their numbers are', () => {
  fc.assert(
    fc.property(fc.uniqueArray(typeNumber), (numbers) => {
      const mask = maskOfNumbers(numbers)
      for (let number = 0; number < 64; number++) {
        assert.equal(isInMask(mask, number), numbers.includes(number), `${number} of ${mask}`)
      }
      assert.deepEqual(
        numbersIn(mask),
        numbers.toSorted((a, b) => a - b),
      )
    }),
  )
})

test('equal sets have equal masks, and a mask stays the same as JSON', () => {
  fc.assert(
    fc.property(fc.uniqueArray(typeNumber), (numbers) => {
      const mask = maskOfNumbers(numbers)
      assert.equal(maskOfNumbers(numbers.toReversed()), mask)
      assert.equal(JSON.parse(JSON.stringify(mask)), mask)
    }),
  )
})

test('a mask is the integer that it was before there were added types, as long as it fits into one', () => {
  assert.equal(defaultTypesMask, 0x3_f7ff)
  assert.equal(maskOfNumbers([0, 21]), 0x20_0001)
  assert.equal(maskOfNumbers([30]), 2 ** 30)
  assert.equal(maskOfNumbers([31]), '0x80000000')
  assert.equal(maskOfNumbers([0, 63]), '0x8000000000000001')
})

/** Returns the ordering key of an update of this type with the id 7 at the path. */
function keyOf(number: number, path: string): string {
  const payload = path.split('.').reduceRight<unknown>((inner, name) => ({ [name]: inner }), 7)
  return deriveOrderingKey(number, Buffer.from(`"x":${JSON.stringify(payload)}`))
}

test('64 types at once are known by name, number, key and time to live', () => {
  assert.equal(updateTypes.length, 64)
  for (const [number, type] of updateTypes.entries()) {
    assert.equal(updateTypeNumber.get(type), number)
    assert.deepEqual(accept(`{"${type}":{}}`), { type, text: `"${type}":{}` })
    assert.equal(allowedUpdatesOfPoll(`["${type}"]`), maskOfNumbers([number]))
  }
  assert.deepEqual(typesOf(allTypes()), updateTypes)
  for (const [nth, { keyPath, ttlS = 86_400 }] of sixtyFourTypes.entries()) {
    const number = contractTypes.length + nth
    assert.equal(lifeS(number, undefined), ttlS)
    const key = keyOf(number, keyPath ?? 'id')
    assert.match(key, keyPath === undefined ? /^$/ : /^[A-Zdefghijklstvwxz0]7$/)
    if (keyPath !== undefined) assert(keysMeantBy(`${keyPath}=7`)(key))
  }
})

test('added types with one path share their keys, and no others do', () => {
  const keys = new Map<string, Set<string>>()
  for (const [nth, { keyPath }] of sixtyFourTypes.entries()) {
    if (keyPath === undefined) continue
    const key = keyOf(contractTypes.length + nth, keyPath)
    keys.set(keyPath, (keys.get(keyPath) ?? new Set()).add(key))
  }
  const all = [...keys.values()].flatMap((each) => [...each])
  assert.equal(all.length, keys.size)
  assert.equal(new Set(all).size, keys.size)
})

test('no added type is in the default set', () => {
  for (const number of updateTypes.keys()) {
    if (number >= contractTypes.length) assert(!isInMask(defaultTypesMask, number))
  }
})

test('a refusal lists the added types, too', () => {
  assert.match(
    refusalOf('{"pong":{}}'),
    /one of the 64 update types .*, message_reaction, massage,/,
  )
})

function numberOf(type: string): number {
  return updateTypes.indexOf(type)
}

test('only the forms of known added types are checked', () => {
  setAddedTypes([...typesOfReference['10.0'], { name: 'ping' }])
  assertTelegramFields(numberOf('ping'), Buffer.from('"ping":{}'))
  assertTelegramFields(numberOf('custom_event'), Buffer.from('"custom_event":{}'))
  const check = (): void =>
    assertTelegramFields(numberOf('guest_message'), Buffer.from('"guest_message":{}'))
  assert.throws(check, /expected an integer as guest_message.message_id/)
})

test('types that are set again replace those before, everywhere', () => {
  setAddedTypes([{ name: 'ping', ttlS: 5 }])
  assert.deepEqual(updateTypes.slice(contractTypes.length), ['ping'])
  assert.equal(lifeS(contractTypes.length, undefined), 5)
  assert.equal(lifeS(contractTypes.length + 1, undefined), 86_400)
  assert.equal(updateTypeNumber.get('massage'), undefined)
  assert.notEqual(refusalOf('{"massage":{}}'), 'accepted')
})
