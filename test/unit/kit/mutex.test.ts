import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Mutex } from '../../../src/kit/mutex.ts'

test('work runs alone, in the order of the requests, whether it fails or not', async () => {
  const mutex = new Mutex()
  const log: string[] = []
  const work = (name: string, fails = false) =>
    mutex.run(async () => {
      log.push(`${name} begins`)
      await Promise.resolve()
      log.push(`${name} ends`)
      if (fails) throw new Error(name)
      return name
    })
  const [a, b, c] = [work('a'), work('b', true), work('c')]
  assert.equal(mutex.isBusy, true)
  await assert.rejects(b, { message: 'b' })
  assert.deepEqual([await a, await c], ['a', 'c'])
  assert.deepEqual(log, ['a begins', 'a ends', 'b begins', 'b ends', 'c begins', 'c ends'])
  assert.equal(mutex.isBusy, false)
})

test('the mutex is idle when all requested work has ended', async () => {
  const mutex = new Mutex()
  let isDone = false
  void mutex.run(async () => {
    await Promise.resolve()
    isDone = true
  })
  await mutex.idle()
  assert.equal(isDone, true)
})
