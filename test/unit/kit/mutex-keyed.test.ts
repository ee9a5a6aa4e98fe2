import assert from 'node:assert/strict'
import { test } from 'node:test'
import { KeyedMutex } from '../../../src/kit/mutex.ts'
import { settle } from '../../support/kit/fake-clock.ts'

test('work about one thing runs in its order, work about others beside it, and nothing is left of it', async () => {
  const mutex = new KeyedMutex<string>()
  const begun: string[] = []
  const ends: (() => void)[] = []
  const run = (key: string, name: string): Promise<string> =>
    mutex.run(key, async () => {
      begun.push(name)
      await new Promise<void>((resolve) => ends.push(resolve))
      if (name === 'a1') throw new Error('fails')
      return name
    })
  const failed = assert.rejects(run('a', 'a1'), /fails/)
  const others = [run('a', 'a2'), run('b', 'b1')]
  await settle()
  assert.deepEqual([begun, mutex.size], [['a1', 'b1'], 2])
  ends[0]?.()
  await failed
  await settle()
  assert.deepEqual([begun, mutex.size], [['a1', 'b1', 'a2'], 2])
  for (const end of ends) end()
  assert.deepEqual(await Promise.all(others), ['a2', 'b1'])
  await settle()
  assert.equal(mutex.size, 0)
})
