import assert from 'node:assert/strict'
import { test } from 'node:test'
import { windowBytesOf } from '../../../src/worker/window-memory.ts'
import { mib } from '../../../src/kit/limits.ts'

test('pending updates take 256 MiB of a worker, or its part of an eighth of a small memory, unless the operator says otherwise', () => {
  assert.equal(of(64 * 1024, 8), 256)
  assert.equal(of(4 * 1024, 2), 256)
  assert.equal(of(2 * 1024, 2), 128)
  assert.equal(of(320, 1), 40)
  assert.equal(of(16, 4), 1)
  assert.equal(of(320, 1, 512 * mib), 512)
  assert.equal(windowBytesOf({ windowBytes: undefined, workers: 1 }) <= 256 * mib, true)
})

function of(memoryMib: number, workers: number, windowBytes?: number): number {
  return windowBytesOf({ windowBytes, workers, memoryBytes: memoryMib * mib }) / mib
}
