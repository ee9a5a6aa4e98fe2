import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FloodGate } from '../../../../src/delivery/pace/flood-gate.ts'

test('without a recent success one connection is opened every 2 s, and at most 4', () => {
  const gate = new FloodGate(40)
  for (let count = 0; count < 4; count++) {
    const nowMs = 1_000 + count * 2_000
    assert.equal(gate.waitMs(nowMs, count), 0)
    gate.opened(nowMs)
    assert.equal(gate.waitMs(nowMs, count + 1), count < 3 ? 2_000 : Number.POSITIVE_INFINITY)
    assert.equal(gate.waitMs(nowMs + 1_999, 1), 1)
  }
})

test('after a success 10 connections are opened every half second, up to max_connections, for 10 s', () => {
  const gate = new FloodGate(25)
  gate.succeeded(0)
  for (let count = 0; count < 10; count++) {
    assert.equal(gate.waitMs(count, count), 0)
    gate.opened(count)
  }
  assert.equal(gate.waitMs(10, 10), 490)
  assert.equal(gate.waitMs(500, 10), 0)
  assert.equal(gate.waitMs(9_999, 24), 0)
  assert.equal(gate.waitMs(9_999, 25), Number.POSITIVE_INFINITY)
  assert.equal(gate.waitMs(10_000, 4), Number.POSITIVE_INFINITY)
})
