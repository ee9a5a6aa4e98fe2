import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CrashMemory, crashMemoryMs } from '../../../../src/process/primary/crash-memory.ts'

test('consecutive deaths by an assertion or a memory fault are counted', () => {
  const memory = new CrashMemory()
  assert.equal(memory.last, undefined)
  memory.note('SIGABRT', 0)
  assert.deepEqual(memory.last, { signal: 'SIGABRT', inARow: 1 })
  memory.note('SIGBUS', crashMemoryMs)
  assert.deepEqual(memory.last, { signal: 'SIGBUS', inARow: 2 })
  memory.note('SIGSEGV', 2 * crashMemoryMs + 1)
  assert.deepEqual(memory.last, { signal: 'SIGSEGV', inARow: 1 })
})

test('a worker that was killed or that exited says nothing about its shards', () => {
  const memory = new CrashMemory()
  for (const signal of ['SIGKILL', 'SIGTERM', undefined]) {
    memory.note('SIGABRT', 0)
    memory.note(signal, 1)
    assert.equal(memory.last, undefined)
  }
})
