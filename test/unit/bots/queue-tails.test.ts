import assert from 'node:assert/strict'
import { test } from 'node:test'
import { QueueTails } from '../../../src/bots/queue-tails.ts'

test('all tails of a queue end, and a tail that has left is told nothing', () => {
  const tails = new QueueTails()
  const seen: string[] = []
  const tailOf = (name: string): Parameters<QueueTails['add']>[0] => ({
    pushed: () => void seen.push(`${name} pushed`),
    advanced: (kind) => void seen.push(`${name} ${kind}`),
    end: () => void seen.push(`${name} end`),
  })
  const [first, second] = [tailOf('first'), tailOf('second')]
  assert.equal(tails.isEmpty, true)
  tails.add(first)
  tails.add(second)
  const advanced = { from: 1, floor: 2, removedCount: 1, removedBytes: 1 }
  tails.advanced('confirm', advanced)
  tails.remove(first)
  tails.advanced('drop', advanced)
  tails.add(first)
  tails.end()
  assert.equal(tails.isEmpty, true)
  tails.advanced('confirm', advanced)
  assert.deepEqual(seen, [
    'first confirm',
    'second confirm',
    'second drop',
    'second end',
    'first end',
  ])
})
