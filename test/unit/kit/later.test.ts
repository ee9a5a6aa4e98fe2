import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Later } from '../../../src/kit/later.ts'

test('the receiver gets the value, whether it comes before or after the value', () => {
  const received: unknown[] = []
  const receiver = { receive: (value: unknown) => void received.push(value) }
  const waiting = new Later<number>()
  waiting.sendTo(receiver)
  assert.deepEqual(received, [])
  waiting.settle(1)
  const early = new Later<number | undefined>()
  early.settle(undefined)
  early.sendTo(receiver)
  assert.deepEqual(received, [1, undefined])
})

test('it can be awaited, and a promise as its value may reject', async () => {
  const later = new Later<number>()
  later.settle(Promise.resolve(2))
  assert.equal(await later, 2)
  const failing = new Later<number>()
  const outcome = Promise.resolve(failing)
  failing.settle(Promise.reject(new Error('refused')))
  await assert.rejects(outcome, { message: 'refused' })
})
