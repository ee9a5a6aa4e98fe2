import assert from 'node:assert/strict'
import { test } from 'node:test'
import { KeyedSemaphore, Semaphore } from '../../../src/kit/semaphore.ts'

const openMax = 4

function callsOf(turns: KeyedSemaphore, botId: string, count: number) {
  const started: number[] = []
  const ends = Array.from({ length: count }, (_, call) =>
    turns.enter(botId, () => started.push(call)),
  )
  return { started, end: (call: number): void => ends[call]?.() }
}

const first = Array.from({ length: openMax }, (_, call) => call)

test('a bot has a limited number of open calls, and its others follow in their order', () => {
  const turns = new KeyedSemaphore(openMax)
  const { started, end } = callsOf(turns, '100', openMax + 3)
  assert.deepEqual(started, first)
  end(2)
  end(2)
  end(0)
  assert.deepEqual(started, [...first, openMax, openMax + 1])
})

test('calls of other bots do not wait for it', () => {
  const turns = new KeyedSemaphore(openMax)
  callsOf(turns, '100', openMax + 1)
  assert.deepEqual(callsOf(turns, '101', 1).started, [0])
})

test('a call that is canceled while it waits takes no turn', () => {
  const turns = new KeyedSemaphore(openMax)
  const { started, end } = callsOf(turns, '100', openMax + 2)
  end(openMax)
  end(1)
  assert.deepEqual(started, [...first, openMax + 1])
  for (const call of first) end(call)
  end(openMax + 1)
  assert.deepEqual(callsOf(turns, '100', openMax + 1).started, first)
})

test('a permit that is returned twice is free once', () => {
  const semaphore = new Semaphore(1)
  let admitted = 0
  const leave = semaphore.enter(() => admitted++)
  leave()
  leave()
  semaphore.enter(() => admitted++)
  semaphore.enter(() => admitted++)
  assert.equal(admitted, 2)
})
