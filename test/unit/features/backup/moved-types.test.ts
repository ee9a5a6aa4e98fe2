import assert from 'node:assert/strict'
import { test } from 'node:test'
import { retyped, movedTypes } from '../../../../src/features/backup/moved-types.ts'
import { maskOfNumbers } from '../../../../src/kit/update-types.ts'
import { kinds } from '../../../../src/shard/kinds.ts'
import { queueIdOf } from '../../../../src/shard/records/record-keys.ts'
import {
  decodeJson,
  decodeLeftUpdate,
  decodeUpdate,
  encodeJson,
  encodeLeftUpdate,
  encodeUpdate,
} from '../../../../src/shard/records/record.ts'

const queue = queueIdOf(100, false)
const key = kinds.update.key(queue, 7)
const moves = movedTypes(
  ['order:order.id', 'ping', 'sale:order.id', 'task:id'],
  ['ping', 'task:id', 'new:x', 'order:order.id', 'sale:order.id'],
)
const update = {
  typeNumber: 22,
  acceptedAtS: 1,
  expiresAtS: 2.5,
  orderingKey: 'A42',
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  text: Buffer.from('"order":{"order":{"id":42}}'),
}

test('updates keep their types by name, and their keys by path', () => {
  const moved = (typeNumber: number, orderingKey: string) => {
    const value = encodeUpdate(key, { ...update, typeNumber, orderingKey })
    return decodeUpdate(retyped({ key, value }, moves))
  }
  assert.deepEqual(moved(22, 'A42'), { ...update, typeNumber: 25, orderingKey: 'D42' })
  assert.deepEqual(moved(24, 'A42'), { ...update, typeNumber: 26, orderingKey: 'D42' })
  assert.deepEqual(moved(25, 'D42'), { ...update, typeNumber: 23, orderingKey: 'B42' })
  for (const orderingKey of ['', '=A42', 'm42']) {
    assert.deepEqual(moved(23, orderingKey), { ...update, typeNumber: 22, orderingKey })
  }
  assert.deepEqual(moved(0, 'm42'), { ...update, typeNumber: 0, orderingKey: 'm42' })
})

test('dead letters and kept updates keep their types by name', () => {
  for (const kind of ['d', 'v'] as const) {
    const ownKey = Buffer.from(key)
    ownKey.write(kind)
    const { expiresAtS: _expires, ...rest } = update
    const left = { ...rest, reason: 'refused', leftAtMs: 3, attempts: 4, lastError: 'no' } as const
    const value = encodeLeftUpdate(ownKey, left)
    const moved = decodeLeftUpdate(retyped({ key: ownKey, value }, moves))
    assert.deepEqual(moved, { ...left, typeNumber: 25, orderingKey: 'D42' })
  }
})

/** Returns the JSON of a record of this kind after the move. */
function movedJson(kind: string, json: unknown): unknown {
  const ownKey =
    kind === 'w' ? kinds.settings.key(queue) : Buffer.concat([Buffer.from(kind), key.subarray(1)])
  return decodeJson(retyped({ key: ownKey, value: encodeJson(ownKey, json) }, moves))
}

test('allowed_updates and what a replay selects keep their types by name', () => {
  assert.deepEqual(movedJson('w', { allowedTypes: maskOfNumbers([0, 22, 25]), isPaused: true }), {
    allowedTypes: maskOfNumbers([0, 25, 23]),
    isPaused: true,
  })
  assert.deepEqual(movedJson('w', { isPaused: true }), { isPaused: true })
  assert.deepEqual(movedJson('j', { selection: { typeNumber: 23, untilS: 1 } }), {
    selection: { typeNumber: 22, untilS: 1 },
  })
  assert.deepEqual(movedJson('j', { selection: { untilS: 1 } }), { selection: { untilS: 1 } })
})

test('records stay byte for byte if the types do not move, or if they are damaged', () => {
  const value = encodeUpdate(key, update)
  const same = movedTypes(['order:order.id'], ['order:order.id', 'ping'])
  assert.equal(retyped({ key, value }, same).value, value)
  const damaged = Buffer.from(value)
  damaged[3] = 9
  assert.equal(retyped({ key, value: damaged }, moves).value, damaged)
})
