import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RelayLedger } from './relay-ledger.ts'

function ledgerOf(...received: readonly (readonly [number, string])[]): RelayLedger {
  const ledger = new RelayLedger(7)
  for (const [id, text] of received) ledger.receive(id, text)
  return ledger
}

test('an update that comes again under its id breaks no rule', () => {
  const ledger = ledgerOf([10, '1 0'], [11, '2 0'], [10, '1 0'], [12, '1 1'])
  ledger.settle({ 1: 2, 2: 1 })
  assert.deepEqual(ledger.violations, [])
  assert.deepEqual(ledger.counts, { received: 3, receivedAgain: 1 })
})

test('a message under two ids is doubled', () => {
  assert.match(ledgerOf([10, '1 0'], [11, '1 0']).violations.join(), /^doubled: bot 7: 1 0/)
})

test('a message that never came is lost', () => {
  const ledger = ledgerOf([10, '1 0'], [12, '1 2'])
  assert(!ledger.hasAll({ 1: 3 }))
  ledger.settle({ 1: 3, 2: 1 })
  assert.deepEqual(ledger.violations, [
    'lost: bot 7: 1 1 has not come',
    'lost: bot 7: 2 0 has not come',
  ])
})

test('a message after a later one of its chat, or with a lower id, breaks the order', () => {
  assert.match(ledgerOf([10, '1 0'], [12, '1 2'], [11, '1 1']).violations.join(), /^order/)
  assert.match(ledgerOf([10, '1 0'], [9, '1 1']).violations.join(), /^order/)
  assert.deepEqual(ledgerOf([10, '1 0'], [9, '2 0']).violations, [])
})
