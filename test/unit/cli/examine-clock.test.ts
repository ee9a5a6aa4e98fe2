import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type ClockFacts, clockFindings } from '../../../src/cli/examine-clock.ts'

const nowMs = Date.UTC(2026, 10, 23, 8, 15)

function finding(facts: Partial<ClockFacts>): { readonly level?: string; readonly text?: string } {
  const usual = { nowMs, installedMs: nowMs - 9e8, writtenMs: 0, isSynchronized: true }
  return clockFindings({ ...usual, ...facts })[0] ?? {}
}

test('a clock before the installation or before the last write is a fault', () => {
  assert.equal(finding({}).level, 'good')
  assert.equal(finding({}).text, 'the clock says 2026-11-23 08:15:00Z and is synchronized')
  assert.equal(finding({ installedMs: nowMs + 2_001 }).level, 'bad')
  assert.match(
    finding({ installedMs: nowMs + 60_000 }).text ?? '',
    /installed at 2026-11-23 08:16:00Z/,
  )
  assert.equal(finding({ writtenMs: nowMs + 2_001 }).level, 'bad')
  assert.equal(finding({ writtenMs: nowMs + 2_000, installedMs: nowMs + 2_000 }).level, 'good')
})

test('a clock that nobody synchronizes is a warning', () => {
  assert.equal(finding({ isSynchronized: false }).level, 'warn')
  assert.match(finding({ isSynchronized: undefined }).text ?? '', /does not say whether/)
})
